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
    Limited,
    Parked,
    Postponed,
    Released,
    Retry,
    Settlement,
    Verdict,
)
from bullpen.stores.base import Renewal, SettleOutcome
from bullpen.testing.machine.model.grouping import Grouping
from bullpen.testing.machine.model.jobs import ModelJob, due_ms
from bullpen.testing.machine.model.limits import ModelLimits


class Working(Grouping):
    has_expired = False
    """Whether the last claim ended jobs: where it gives out their parents, among the others, is left open."""

    def claim(
        self, wants: Mapping[str, int], *, worker: str, lease_ms: int, at_most: int | None = None
    ) -> tuple[list[ModelJob], int | None]:
        """The jobs in the order in which they are given out, and when to look again."""
        taken: list[ModelJob] = []
        due: list[int] = []
        self.has_expired = False
        for queue, slots in wants.items():
            for job in self.line(queue, State.DELAYED):
                if due_ms(job) <= self.now_ms:
                    self._to_line(job)
            due += [at for job in self.line(queue, State.DELAYED) if (at := job.record.run_at_ms) is not None]
            if at_most is not None:
                slots = min(slots, at_most - len(taken))  # noqa: PLW2901 - what is left of it
            if queue in self.paused or slots <= 0 or self.is_full(queue):
                continue
            if (closed_until_ms := self.queue_closed_until(queue)) is not None:
                due.append(closed_until_ms)
                continue
            taken += self._take(queue, self._room(queue, slots), worker, lease_ms, due)
        return taken, min(due, default=None)

    def is_full(self, queue: str) -> bool:
        cap = self.limits.get(queue, ModelLimits()).said.concurrency
        return cap is not None and len(self.line(queue, State.ACTIVE)) >= cap

    def queue_closed_until(self, queue: str) -> int | None:
        known = self.limits.get(queue, ModelLimits())
        return known.window.closed_until(known.said.rate_max, self.now_ms)

    def _room(self, queue: str, slots: int) -> int:
        known = self.limits.get(queue, ModelLimits())
        left = known.window.left(known.said.rate_max, self.now_ms)
        cap = known.said.concurrency
        running = len(self.line(queue, State.ACTIVE))
        return min(slots, slots if left is None else left, slots if cap is None else cap - running)

    def _take(self, queue: str, slots: int, worker: str, lease_ms: int, due: list[int]) -> list[ModelJob]:
        taken: list[ModelJob] = []
        while len(taken) < slots and (line := self._line_without_groups(queue)):
            self._start(line[0], worker, lease_ms, taken)
        if len(taken) < slots:
            while len(taken) < slots and (turn := self.next_in_turn(queue)) is not None:
                if self._start(turn[1], worker, lease_ms, taken):
                    self.count_turn(queue, turn[0])
            self.stand(queue)
            due += self.wakes_ms(queue)
        if (known := self.limits.get(queue)) is not None:
            known.window.count(known.said.rate_max, known.said.rate_ms, self.now_ms, len(taken))
        return taken

    def _line_without_groups(self, queue: str) -> list[ModelJob]:
        return [job for job in self.line(queue, *READY) if job.record.spec.group is None]

    def _start(self, job: ModelJob, worker: str, lease_ms: int, taken: list[ModelJob]) -> bool:
        """Whether it runs; one that is late ends instead."""
        if self._is_late(job):
            self._expire(job)
            self.has_expired = True
            return False
        job.change(state=State.ACTIVE, epoch=job.record.epoch + 1, started_ms=self.now_ms, worker=worker)
        job.lease_until_ms = self.now_ms + lease_ms
        job.start_by_ms = None
        job.process = self.process
        taken.append(job)
        return True

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
        if isinstance(verdict, Limited):
            self.close_for(job, verdict.delay_ms, group_only=verdict.group_only)
        may_run_again = isinstance(verdict, Retry | Postponed | Parked | Released | Limited | AwaitChildren)
        if may_run_again and job.record.cancelling is not None:
            self._fail(job, Failure(job.record.cancelling, FailureKind.CANCELLED))
            return
        if not isinstance(verdict, Postponed | Parked | Released | Limited | AwaitChildren):
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
            case Released() | Limited():
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
        if queue in self.paused or self.is_full(queue) or self.queue_closed_until(queue) is not None:
            return False
        due = any(due_ms(job) <= self.now_ms for job in self.line(queue, State.DELAYED))
        return due or bool(self._line_without_groups(queue)) or self.next_in_turn(queue) is not None
