"""Settling and claiming in one transaction."""

from collections.abc import Mapping, Sequence

from bullpen.job.events import Event, EventKind
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import Claimed, Exchanged, SettleOutcome
from bullpen.stores.sqlite.claiming import Claimant, claim
from bullpen.stores.sqlite.completing import settle
from bullpen.stores.sqlite.transaction import Transaction

_SETTLED = SettleOutcome.SETTLED  # looked up once, not for each job: see completing.py
_UNFINISHED = ("waiting", "prioritized", "delayed", "active", "waiting_children")


def exchange(
    tx: Transaction,
    settlements: Sequence[Settlement],
    wants: Mapping[str, int],
    claimant: Claimant,
    at_most: int | None = None,
) -> Exchanged:
    tx.failed.clear()
    settled = settle(tx, settlements) if settlements else []
    claimed = claim(tx, wants, claimant, at_most) if wants else Claimed()
    _tell_if_drained(tx, settlements, settled, claimed)
    return Exchanged(tuple(settled), claimed, tuple(tx.failed))


def _tell_if_drained(
    tx: Transaction, settlements: Sequence[Settlement], outcomes: Sequence[SettleOutcome], claimed: Claimed
) -> None:
    """Say so when the last job of a queue was settled and nothing more is to run."""
    busy = {job.lease.ref.queue for job in claimed.jobs}
    done = zip(settlements, outcomes, strict=True)
    settled = {settlement.lease.ref.queue for settlement, outcome in done if outcome == _SETTLED}
    for name in settled - busy:
        queue = tx.queue_number_if_known(name)
        if queue and not any(tx.counters(queue, *_UNFINISHED)):
            tx.tell(queue, Event(EventKind.DRAINED, at_ms=tx.now_ms))
