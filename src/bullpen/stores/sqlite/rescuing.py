"""Rescuing: jobs whose worker is gone go back to their line, or fail when that happens too often."""

from collections.abc import Sequence

from bullpen.job.record import CrashKind, CrashLimits, JobRef
from bullpen.stores.base import Rescued
from bullpen.stores.sqlite.grouping import forget_idle
from bullpen.stores.sqlite.presence import DeadProcess
from bullpen.stores.sqlite.requests import expect_no_claim, recall_claim
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, READY, WAITING_CHILDREN
from bullpen.stores.sqlite.settling import expire, look_up, release
from bullpen.stores.sqlite.tokens import ClaimToken
from bullpen.stores.sqlite.transaction import Row, Transaction

_AT_ONCE = 1_000
"""A sweep takes that many at most; the next one comes within a second."""


def rescue(tx: Transaction, queues: Sequence[str], limits: CrashLimits, dead: Sequence[DeadProcess]) -> Rescued:
    sweep = _Sweep(tx, limits)
    for process in dead:
        sweep.take_over(process)
        tx.when_committed(process.bury)
    for name in queues:
        if queue := tx.queue_number_if_known(name):
            sweep.recover_expired_leases(queue)
            sweep.end_late(queue)
            forget_idle(tx, queue)
    return sweep.rescued()


def report_crash(tx: Transaction, worker: str, kind: CrashKind, limits: CrashLimits) -> Rescued:
    sweep = _Sweep(tx, limits)
    rows = tx.db.execute(
        f"SELECT key FROM job WHERE state = {ACTIVE} AND worker = ? ORDER BY position DESC", (worker,)
    ).fetchall()
    for (key,) in rows:
        sweep.take_back(key, kind)
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
        tx.failed.clear()

    def rescued(self) -> Rescued:
        return Rescued(tuple(self._recovered), tuple(self._tx.failed))

    def take_over(self, dead: DeadProcess) -> None:
        """Take back what a dead process held; what never reached it was never started."""
        rows: list[Row] = self._tx.db.execute(
            f"SELECT key, token FROM job WHERE state = {ACTIVE} AND token >= ? AND token < ? ORDER BY position DESC",
            (f"{dead.instance}.", f"{dead.instance}/"),
        ).fetchall()
        for key, token in rows:
            never_started = ClaimToken.parse(token).number > dead.last_received
            self.take_back(key, None if never_started else CrashKind.KILLED)

    def recover_expired_leases(self, queue: int) -> None:
        rows = self._tx.db.execute(
            f"SELECT key FROM job WHERE queue = ? AND state = {ACTIVE} AND lease_until_ms < ?"
            " ORDER BY lease_until_ms, position LIMIT ?",
            (queue, self._tx.now_ms, _AT_ONCE),
        ).fetchall()
        # Each goes to the head, so the last comes first and the old order stands again.
        for (key,) in reversed(rows):
            self.take_back(key, CrashKind.LOST_HEARTBEAT)

    def end_late(self, queue: int) -> None:
        """Jobs past their start-by time end, also where no worker claims."""
        rows = self._tx.db.execute(
            f"SELECT key FROM job WHERE start_by_ms < ? AND state IN ({READY}, {DELAYED}, {WAITING_CHILDREN})"
            " AND queue = ? LIMIT ?",
            (self._tx.now_ms, queue, _AT_ONCE),
        ).fetchall()
        for (key,) in rows:
            expire(self._tx, key)

    def take_back(self, key: int, crash: CrashKind | None) -> None:
        job = look_up(self._tx, key)
        assert job is not None
        waits_again = release(self._tx, job, crash, self._limits)
        ref = JobRef(self._tx.queue_name(job.queue), job.id)
        if waits_again:
            self._recovered.append(ref)
        elif job.cancelling is not None:
            self._tx.failed.append(ref)
