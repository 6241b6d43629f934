"""Adding jobs, and running them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from bullpen.job.record import CrashKind, CrashLimits, Lease
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Settlement
from bullpen.stores.answers import Added, Claimed, Exchanged, Notice, Renewal, Rescued, SettleOutcome, WorkerInfo


class Working(Protocol):
    # ── producing ────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        """Add all of these, also across queues, or none of them.

        Each goes to waiting, prioritized or delayed as its spec says. An explicit id that is
        taken, or was taken within a day, changes nothing. Deduplication is applied in order.
        More for a group than may wait there is GroupFull, and nothing was added.

        A job with children goes to waiting-children, and on to the head of its line, its priority or
        its delay once none of them is pending. Nothing below a job that is a duplicate is added. A
        child whose id is taken by a job without a parent becomes that parent's child as it stands;
        one that is another's child is WrongState. BadOption for trees that are too deep, deduplicated
        or have one id twice.
        """

    async def add_children(self, lease: Lease, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        """Add these as children of a running job, all or none; LeaseLost if the lease is.

        The job runs on; AwaitChildren lets it wait for them. A child that it has already stays as it
        is. BadOption, WrongState and GroupFull as for `add`, WrongState also for a child that the job
        itself descends from.
        """

    # ── working ──────────────────────────────────────────────────────────────────────────

    async def claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
        held_elsewhere: bool = False,
        group: str | None = None,
    ) -> Claimed:
        """Take up to that many runnable jobs of each queue: one claimant for a job at a time.

        Order: no priority first, then by priority, each first in, first out. Due delayed jobs
        are made runnable first; a job past its start-by time ends as expired instead, and a parent
        that this releases may come at any place of the claim. A paused queue gives nothing.
        With `at_most`, no more than that of all queues together, earlier ones first.

        Jobs without a group come first. Then the groups take turns, in proportion to their
        weights, each in its own order; one that had nothing to give saves no turns up. No limit
        of the queue or of a group is exceeded, whoever claims.

        With `held_elsewhere` the leases are for someone who reaches the store through this process
        only: whatever becomes of it, they stand until they run out.

        With `group`, only jobs that wait in this group of each queue. Each uses one of its turns, so what it
        gets in this way it has had when the groups take turns again.
        """

    async def settle(self, settlements: Sequence[Settlement], *, request: str) -> Sequence[SettleOutcome]:
        """Carry out each verdict and end its lease; a lost lease changes nothing and is reported.

        A child that ends is told to its parent in the same step: its result, or its failure as its
        `on_failure` says. A job that completes while children are pending does not: it waits for
        them and runs again. One whose child failed with it, while it ran, fails instead.
        """

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
    ) -> Exchanged:
        """Settle these and claim those, in one atomic trip."""

    async def renew(self, leases: Sequence[Lease], *, lease_ms: int) -> Sequence[Renewal]:
        """Extend each lease from now, and say which are lost and which are to stop."""

    async def abandon(self, request: str) -> int:
        """Hand back what that claim or exchange took and nobody runs; no stall is counted.

        For a caller that lost the answer and will not ask again. Returns how many came back.
        Should the request itself arrive only later, it settles but claims nothing.
        """

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        """Return as soon as one of the queues may have a runnable job, or at the deadline.

        False means that the time ran out. True may be a false alarm; a job that became
        runnable is never slept through.
        """

    async def wait_and_claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        timeout_ms: int,
        at_most: int | None = None,
    ) -> Exchanged:
        """Claim as soon as one of these queues may have a runnable job: `wait`, then `exchange`.

        On one trip where the store can, so that a job is here when the news of it would have been.
        Nothing may come at the deadline and after a false alarm. Given up, it keeps nothing: what it
        took comes back at once, and no stall is counted.
        """

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        """The jobs that this worker holds and that are to stop; waits for the first one."""

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:
        """Take back jobs whose lease ran out or whose process is dead.

        Each is counted as a crash and goes to the head of its line with its priority, in the old
        order, or fails once the limits are exceeded. A claim whose answer never arrived is no crash.
        """

    async def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> Rescued:
        """Take back all that a worker held, whose end was seen to be of this kind."""

    # ── workers ──────────────────────────────────────────────────────────────────────────

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        """Register the worker, or renew what is known of it; forgotten after that time without a beat."""

    async def workers(self) -> Sequence[WorkerInfo]:
        """The workers that beat lately, by name."""
