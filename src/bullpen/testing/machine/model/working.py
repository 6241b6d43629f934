"""What workers ask for: jobs, and that they be settled."""

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from bullpen.job.record import CrashKind, Failure, FailureKind, Lease
from bullpen.job.state import READY, State
from bullpen.job.verdicts import (
    AwaitChildren,
    Cancelled,
    Completed,
    Failed,
    Parked,
    Postponed,
    Released,
    Retry,
    Settlement,
    Verdict,
)
from bullpen.stores.base import Renewal, SettleOutcome
from bullpen.testing.machine.model.ending import Ending
from bullpen.testing.machine.model.jobs import ModelJob, due_ms


class Working(Ending):
    has_expired = False
    """Whether the last claim ended jobs: where it gives out their parents, among the others, is left open."""

    def claim(self, wants: Mapping[str, int], *, worker: str, lease_ms: int) -> tuple[list[ModelJob], int | None]:
        """The jobs in the order in which they are given out, and when the next delayed one is due."""
        taken: list[ModelJob] = []
        due: list[int] = []
        self.has_expired = False
        for queue, slots in wants.items():
            for job in self.line(queue, State.DELAYED):
                if due_ms(job) <= self.now_ms:
                    self._to_line(job)
            due += [at for job in self.line(queue, State.DELAYED) if (at := job.record.run_at_ms) is not None]
            if queue not in self.paused:
                taken += self._take(queue, slots, worker, lease_ms)
        return taken, min(due, default=None)

    def _take(self, queue: str, slots: int, worker: str, lease_ms: int) -> list[ModelJob]:
        taken: list[ModelJob] = []
        while len(taken) < slots and (line := self.line(queue, State.WAITING, State.PRIORITIZED)):
            job = line[0]
            if self._is_late(job):
                self._expire(job)
                self.has_expired = True
                continue
            job.change(state=State.ACTIVE, epoch=job.record.epoch + 1, started_ms=self.now_ms, worker=worker)
            job.lease_until_ms = self.now_ms + lease_ms
            job.start_by_ms = None
            job.process = self.process
            taken.append(job)
        return taken

    def settle(self, settlements: Iterable[Settlement]) -> list[SettleOutcome]:
        outcomes = []
        for settlement in settlements:
            if (job := self.held(settlement.lease)) is None:
                outcomes.append(SettleOutcome.LEASE_LOST)
            else:
                outcomes.append(self._settle_one(job, settlement.verdict))
        return outcomes

    def _settle_one(self, job: ModelJob, verdict: Verdict) -> SettleOutcome:
        """A job that has pending children, or failed with one, does not complete."""
        if isinstance(verdict, Completed | AwaitChildren) and job.record.doomed is not None:
            if job.record.cancelling is None or isinstance(verdict, Completed):
                verdict = Failed(job.record.doomed)
        elif isinstance(verdict, Completed) and self._has_pending(job):
            was_cancelling = job.record.cancelling is not None
            self._carry_out(job, AwaitChildren())
            return SettleOutcome.SETTLED if was_cancelling else SettleOutcome.PENDING_CHILDREN
        self._carry_out(job, verdict)
        return SettleOutcome.SETTLED

    def _carry_out(self, job: ModelJob, verdict: Verdict) -> None:
        if isinstance(verdict, Released) and verdict.crash is not None:
            self._count_crash(job, verdict.crash)
        may_run_again = isinstance(verdict, Retry | Postponed | Parked | Released | AwaitChildren)
        if may_run_again and job.record.cancelling is not None:
            self._fail(job, Failure(job.record.cancelling, FailureKind.CANCELLED))
            return
        if not isinstance(verdict, Postponed | Parked | Released | AwaitChildren):
            job.change(attempts_made=job.record.attempts_made + 1)
        match verdict:
            case Completed(result, then):
                job.change(result=result)
                self._finish(job, State.COMPLETED, then)
            case Retry(failure, delay_ms):
                job.change(failure=failure)
                if delay_ms:
                    self._delay(job, delay_ms)
                else:
                    self._to_line(job, head=job.record.spec.lifo)
            case Failed(failure):
                self._fail(job, failure)
            case Cancelled(reason):
                self._fail(job, Failure(reason, FailureKind.CANCELLED))
            case Postponed(delay_ms, note):
                self._delay(job, delay_ms, note)
            case Parked(until_ms, signals, note):
                self._park(job, until_ms, signals, note)
            case Released():
                self._to_line(job, head=True)
            case AwaitChildren():
                self._await_children(job)
            case unknown:
                assert_never(unknown)

    def _park(self, job: ModelJob, until_ms: int | None, signals: Sequence[str], note: str) -> None:
        if (until_ms is not None and until_ms <= self.now_ms) or any(name in signals for name, _ in job.mailbox):
            self._to_line(job)
            return
        self._delay(job, 0, note)
        job.change(run_at_ms=until_ms, parked=tuple(signals))

    def _count_crash(self, job: ModelJob, kind: CrashKind) -> None:
        job.change(crashes={**job.record.crashes, kind: job.record.crashes.get(kind, 0) + 1})

    def renew(self, leases: Iterable[Lease], *, lease_ms: int) -> list[Renewal]:
        answers = []
        for lease in leases:
            if (job := self.held(lease)) is None:
                answers.append(Renewal.LOST)
                continue
            job.lease_until_ms = self.now_ms + lease_ms
            answers.append(Renewal.HELD if job.record.cancelling is None else Renewal.CANCELLING)
        return answers

    def abandon(self, leases: Sequence[Lease]) -> int:
        held = [job for lease in leases if (job := self.held(lease)) is not None]
        for job in reversed(held):
            self._carry_out(job, Released())
        return len(held)

    def notices(self, worker: str, *, run_out: bool) -> set[tuple[Lease | None, str]]:
        """Those that are due; with `run_out` also those of leases that ran out, which may be told."""
        return {
            (job.lease, job.record.cancelling)
            for job in self.jobs.values()
            if job.record.cancelling is not None
            and job.record.worker == worker
            and (run_out or job.lease_until_ms > self.now_ms)
        }

    def is_runnable(self, queue: str) -> bool:
        due = any(due_ms(job) <= self.now_ms for job in self.line(queue, State.DELAYED))
        return queue not in self.paused and (due or bool(self.line(queue, *READY)))
