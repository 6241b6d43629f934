"""Settling a batch: in the order asked, completions that follow each other together."""

from collections.abc import Mapping, Sequence

from bullpen.job.events import Event, EventKind
from bullpen.job.spec import Keep
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import SettleOutcome
from bullpen.stores.sqlite.adding import add, release_dedup
from bullpen.stores.sqlite.family import child_completed, has_pending
from bullpen.stores.sqlite.forgetting import keep_of, retain
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED
from bullpen.stores.sqlite.settling import end_as_asked, finish_failed, look_up, settle_one, to_waiting_children
from bullpen.stores.sqlite.tokens import key_and_token
from bullpen.stores.sqlite.transaction import Row, Transaction, counter_of

_COMPLETE = (
    f"UPDATE job SET state = {COMPLETED}, finished_ms = done.column3, result = done.column4, token = NULL,"
    " lease_until_ms = NULL, cancelling = NULL, attempts_made = attempts_made + 1 FROM (VALUES"
)
_COMPLETED_ROWS = (
    f") AS done WHERE job.key = done.column1 AND job.token = done.column2 AND job.state = {ACTIVE}"
    " {}RETURNING key, queue, own_id, tenant, dedup, keep, parent, group_name"
)
_CHILDLESS_ROWS = _COMPLETED_ROWS.format("AND has_children = 0 ")
_ANY_ROWS = _COMPLETED_ROWS.format("")


def settle(tx: Transaction, settlements: Sequence[Settlement]) -> list[SettleOutcome]:
    """In the order asked; completions that follow each other are carried out together."""
    outcomes = [SettleOutcome.LEASE_LOST] * len(settlements)
    together: dict[int, int] = {}

    def complete_these() -> None:
        for key, outcome in _complete(tx, settlements, together).items():
            outcomes[together[key]] = outcome
        together.clear()

    for n, settlement in enumerate(settlements):
        key, _ = key_and_token(settlement.lease)
        completed = isinstance(settlement.verdict, Completed)
        # One job twice: each settlement finds what the one before it left. So do trees, which may adopt others.
        stands_alone = isinstance(settlement.verdict, Completed) and any(
            job.children for job in settlement.verdict.then
        )
        if not completed or key in together or stands_alone:
            complete_these()
        if completed:
            together[key] = n
            if stands_alone:
                complete_these()
        else:
            outcomes[n] = settle_one(tx, settlement)
    complete_these()
    return outcomes


def _complete(
    tx: Transaction, settlements: Sequence[Settlement], places: Mapping[int, int]
) -> dict[int, SettleOutcome]:
    """Complete all of these that still hold their lease and have no children, in one statement; the others by one."""
    verdicts: dict[int, Completed] = {}
    values: dict[int, Row] = {}
    for key, n in places.items():
        lease, verdict = settlements[n].lease, settlements[n].verdict
        assert isinstance(verdict, Completed)
        verdicts[key] = verdict
        values[key] = (key, key_and_token(lease)[1], tx.now_ms, verdict.result)
    rows = {row[0]: row for row in tx.execute_rows(_COMPLETE, _CHILDLESS_ROWS, list(values.values()))}
    kept: dict[int, list[tuple[int, Keep]]] = {}
    outcomes: dict[int, SettleOutcome] = {}
    for key, value in values.items():
        row = rows.get(key)
        outcomes[key] = SettleOutcome.SETTLED
        if row is None:
            outcomes[key], row = _complete_parent(tx, value)
        if row is not None:
            queue, keep = _follow_up(tx, row, verdicts[key])
            kept.setdefault(queue, []).append((key, keep_of(keep, COMPLETED)))
    for queue, finished in kept.items():
        retain(tx, queue, COMPLETED, finished)
    return outcomes


def _follow_up(tx: Transaction, row: Row, verdict: Completed) -> tuple[int, bytes | None]:
    """What a completion brings with it; the job's queue and retention."""
    key, queue, own_id, tenant, dedup, keep, parent, group = row
    tx.count(queue, counter_of(ACTIVE, 0), -1)
    tx.count_grouped(queue, group, ACTIVE, -1)
    tx.count(queue, counter_of(COMPLETED, 0), 1)
    completed = EventKind.COMPLETED
    tx.tell(queue, Event(completed, own_id or str(key), tx.now_ms, tenant, prev=State.ACTIVE, value=verdict.result))
    if dedup is not None:
        release_dedup(tx, queue, dedup, key)
    if parent is not None:
        child_completed(tx, key, parent, verdict.result)
    if verdict.then:
        add(tx, verdict.then)
    return queue, keep


def _complete_parent(tx: Transaction, value: Row) -> tuple[SettleOutcome, Row | None]:
    """A job that has children: it completes unless one of them is pending, or has doomed it meanwhile."""
    job = look_up(tx, value[0], value[1])
    if job is None:
        return SettleOutcome.LEASE_LOST, None
    if job.doomed is not None:
        finish_failed(tx, job, job.doomed, attempts=1)
        return SettleOutcome.SETTLED, None
    if has_pending(tx.db, job.key):
        if job.cancelling is not None:
            end_as_asked(tx, job, job.cancelling)
            return SettleOutcome.SETTLED, None
        to_waiting_children(tx, job)
        return SettleOutcome.PENDING_CHILDREN, None
    return SettleOutcome.SETTLED, tx.execute_rows(_COMPLETE, _ANY_ROWS, [value])[0]
