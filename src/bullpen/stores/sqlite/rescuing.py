"""Rescuing: jobs whose worker is gone go back to their line, or fail when that happens too often."""

from collections.abc import Callable, Sequence

from bullpen.job.events import Event, EventKind
from bullpen.job.record import CrashKind, Failure, FailureKind, JobRef
from bullpen.stores.base import CrashLimits, Rescued
from bullpen.stores.sqlite.requests import expect_no_claim, recall_claim
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, READY
from bullpen.stores.sqlite.settling import Held, end_unstarted, finish_failed, look_up, release
from bullpen.stores.sqlite.tokens import ClaimToken
from bullpen.stores.sqlite.transaction import Row, Transaction

_AT_ONCE = 1_000
"""A sweep takes that many at most; the next one comes within a second."""

BuryDead = Callable[[Callable[[str, int], None]], None]
"""Calls back with each dead instance and its last received claim."""


def rescue(tx: Transaction, queues: Sequence[str], limits: CrashLimits, bury_dead: BuryDead) -> Rescued:
    sweep = _Sweep(tx, limits)
    bury_dead(sweep.bury)
    for name in queues:
        if queue := tx.queue_number_if_known(name):
            sweep.recover_expired_leases(queue)
            sweep.end_late(queue)
    return sweep.rescued()


def report_crash(tx: Transaction, worker: str, kind: CrashKind, limits: CrashLimits) -> Rescued:
    sweep = _Sweep(tx, limits)
    rows = tx.db.execute(
        f"SELECT key FROM job WHERE state = {ACTIVE} AND worker = ? ORDER BY position DESC", (worker,)
    ).fetchall()
    for (key,) in rows:
        sweep.crashed(key, kind)
    tx.db.execute("DELETE FROM worker WHERE name = ?", (worker,))
    return sweep.rescued()


def abandon(tx: Transaction, request: str) -> int:
    """Hand back what the request claimed and nobody settled since."""
    claim = recall_claim(tx, request)
    if claim is None:
        expect_no_claim(tx, request)
        return 0
    held = [job for key in claim.keys if (job := look_up(tx, key, claim.token)) is not None]
    # Last claimed, first handed back: each goes to the head, so the old order stands again.
    for job in reversed(held):
        release(tx, job, None)
    return len(held)


class _Sweep:
    def __init__(self, tx: Transaction, limits: CrashLimits) -> None:
        self._tx = tx
        self._limits = limits
        self._recovered: list[JobRef] = []
        self._failed: list[JobRef] = []

    def rescued(self) -> Rescued:
        return Rescued(tuple(self._recovered), tuple(self._failed))

    def bury(self, instance: str, last_received: int) -> None:
        """A process is dead: take back what it held; what never reached it was never started."""
        rows: list[Row] = self._tx.db.execute(
            f"SELECT key, token FROM job WHERE state = {ACTIVE} AND token >= ? AND token < ? ORDER BY position DESC",
            (f"{instance}.", f"{instance}/"),
        ).fetchall()
        for key, token in rows:
            if ClaimToken.parse(token).number > last_received:
                job = self._held(key)
                release(self._tx, job, None)
                self._took_back(job)
            else:
                self.crashed(key, CrashKind.KILLED)

    def recover_expired_leases(self, queue: int) -> None:
        rows = self._tx.db.execute(
            f"SELECT key FROM job WHERE queue = ? AND state = {ACTIVE} AND lease_until_ms < ?"
            " ORDER BY lease_until_ms, position LIMIT ?",
            (queue, self._tx.now_ms, _AT_ONCE),
        ).fetchall()
        # Each goes to the head, so the last comes first and the old order stands again.
        for (key,) in reversed(rows):
            self.crashed(key, CrashKind.LOST_HEARTBEAT)

    def end_late(self, queue: int) -> None:
        """Jobs past their start-by time end, also where no worker claims."""
        rows = self._tx.db.execute(
            f"SELECT key FROM job WHERE start_by_ms < ? AND state IN ({READY}, {DELAYED}) AND queue = ? LIMIT ?",
            (self._tx.now_ms, queue, _AT_ONCE),
        ).fetchall()
        for (key,) in rows:
            end_unstarted(self._tx, key, Failure("not started in time", FailureKind.EXPIRED))

    def crashed(self, key: int, kind: CrashKind) -> None:
        job = self._held(key)
        crashes = {**job.crashes, kind: job.crashes.get(kind, 0) + 1}
        self._tx.tell(job.queue, Event(EventKind.STALLED, job.id, self._tx.now_ms, job.tenant, name=kind))
        release(self._tx, job, kind)
        if job.cancelling is None and self._limits.exceeded_by(crashes):
            # Looked up again: it stands in its line now, and leaves it from there.
            reason = f"lost its worker {sum(crashes.values())} times (last: {kind})"
            finish_failed(self._tx, self._held(key), Failure(reason, FailureKind.STALLED), attempts=0)
            self._failed.append(self._ref(job))
        else:
            self._took_back(job)

    def _took_back(self, job: Held) -> None:
        """It waits again; or it has ended, if it was asked to stop."""
        (self._recovered if job.cancelling is None else self._failed).append(self._ref(job))

    def _held(self, key: int) -> Held:
        job = look_up(self._tx, key)
        assert job is not None
        return job

    def _ref(self, job: Held) -> JobRef:
        return JobRef(self._tx.queue_name(job.queue), job.id)
