"""How jobs are taken back from workers that died."""

from collections.abc import Sequence

from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind, JobRef
from bullpen.job.state import FINISHED, READY, State
from bullpen.job.verdicts import Released
from bullpen.testing.machine.model.jobs import ModelJob
from bullpen.testing.machine.model.working import Working


class Rescuing(Working):
    def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> tuple[set[JobRef], set[JobRef]]:
        """The recovered and the failed."""
        with self._in_the_store_s_order():
            return self._rescue(queues, limits)

    def _rescue(self, queues: Sequence[str], limits: CrashLimits) -> tuple[set[JobRef], set[JobRef]]:
        crashed: list[tuple[ModelJob, CrashKind]] = []
        for job in self.line(None, State.ACTIVE):
            if self._detects_dead_processes and job.process in self.dead:
                crashed.append((job, CrashKind.KILLED))
            elif job.ref.queue in queues and job.lease_until_ms < self.now_ms:
                crashed.append((job, CrashKind.LOST_HEARTBEAT))
        recovered, failed = self._take_back(crashed, limits)
        for job in [job for queue in queues for job in self.line(queue, *READY, State.DELAYED, State.WAITING_CHILDREN)]:
            if job.state not in FINISHED and self._is_late(job):
                self._expire(job)
                failed.add(job.ref)
        return recovered, failed

    def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> tuple[set[JobRef], set[JobRef]]:
        held = [job for job in self.line(None, State.ACTIVE) if job.record.worker == worker]
        with self._in_the_store_s_order():
            return self._take_back([(job, kind) for job in held], limits)

    def _take_back(
        self, crashed: list[tuple[ModelJob, CrashKind]], limits: CrashLimits
    ) -> tuple[set[JobRef], set[JobRef]]:
        """All go to the heads of their lines; in which order they stand there is the store's choice."""
        recovered: set[JobRef] = set()
        failed: set[JobRef] = set()
        for job, kind in sorted(crashed, key=lambda each: self.seen.get(each[0].ref, -1), reverse=True):
            self._carry_out(job, Released(kind))
            if job.state in READY and limits.exceeded_by(job.record.crashes):
                self._fail(job, Failure("", FailureKind.STALLED))
            (recovered if job.state in READY else failed).add(job.ref)
        return recovered, failed
