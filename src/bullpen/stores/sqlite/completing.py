"""Settling a batch: in the order asked, completions that follow each other together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

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
from bullpen.stores.sqlite.transaction import Row, Transaction, blob, counter_of

_COMPLETE = (
    f"UPDATE job SET state = {COMPLETED}, finished_ms = done.column3, result = done.column4, token = NULL,"
    " lease_until_ms = NULL, cancelling = NULL, attempts_made = attempts_made + 1 FROM (VALUES"
)
_COMPLETED_ROWS = (
    f") AS done WHERE job.key = done.column1 AND job.token = done.column2 AND job.state = {ACTIVE}"
    " {}RETURNING key, queue, keep, CASE WHEN coalesce(own_id, tenant, dedup, parent, group_name) IS NOT NULL"
    " OR priority > 0 OR attempts_made > 1"
    " THEN json_array(own_id, tenant, dedup, parent, group_name, priority, attempts_made) END"
)
# Each column costs several calls in the driver, and most jobs have none of these.
_decode_rest = msgspec.json.Decoder(tuple[str | None, str | None, str | None, int | None, str | None, int, int]).decode
_NO_REST = (None, None, None, None, None, 0, 1)
_CHILDLESS_ROWS = _COMPLETED_ROWS.format("AND has_children = 0 ")
_ANY_ROWS = _COMPLETED_ROWS.format("")


_Completion = tuple[int, str, Completed]
"""Its place among the settlements asked for, the token and the verdict."""

# Members of an enum that each job needs are looked up once: on Python 3.11 that takes as long as to make an event.
_SETTLED, _TOLD, _PREV = SettleOutcome.SETTLED, EventKind.COMPLETED, State.ACTIVE


def settle(tx: Transaction, settlements: Sequence[Settlement]) -> list[SettleOutcome]:
    """In the order asked; completions that follow each other are carried out together."""
    outcomes = [SettleOutcome.LEASE_LOST] * len(settlements)
    together: dict[int, _Completion] = {}

    def complete_these() -> None:
        if together:
            for place, outcome in _complete(tx, together):
                outcomes[place] = outcome
            together.clear()

    for place, settlement in enumerate(settlements):
        verdict = settlement.verdict
        if not isinstance(verdict, Completed):
            complete_these()
            outcomes[place] = settle_one(tx, settlement)
            continue
        key, token = key_and_token(settlement.lease)
        # One job twice: each settlement finds what the one before it left. So do trees, which may adopt others.
        stands_alone = bool(verdict.then) and any(job.children for job in verdict.then)
        if stands_alone or key in together:
            complete_these()
        together[key] = (place, token, verdict)
        if stands_alone:
            complete_these()
    complete_these()
    return outcomes


def _complete(tx: Transaction, together: Mapping[int, _Completion]) -> list[tuple[int, SettleOutcome]]:
    """Complete all of these that still hold their lease and have no children, in one statement; the others by one."""
    now_ms = tx.now_ms
    values = [(key, token, now_ms, blob(verdict.result)) for key, (_, token, verdict) in together.items()]
    rows = {row[0]: row for row in tx.update_rows(_COMPLETE, _CHILDLESS_ROWS, values)}
    finished: defaultdict[int, list[tuple[int, Keep]]] = defaultdict(list)
    outcomes: list[tuple[int, SettleOutcome]] = []
    for value, (place, _, verdict) in zip(values, together.values(), strict=True):
        outcome, row = _SETTLED, rows.get(value[0])
        if row is None:
            outcome, row = _complete_parent(tx, value)
        outcomes.append((place, outcome))
        if row is not None:
            key, queue, keep, rest = row
            own_id, tenant, dedup, parent, group, priority, attempts = _NO_REST if rest is None else _decode_rest(rest)
            kept = keep_of(keep, COMPLETED)
            told = Event(
                _TOLD,
                own_id or str(key),
                now_ms,
                tenant,
                prev=_PREV,
                value=verdict.result,
                recorded_ms=now_ms if attempts == 1 and kept.count != 0 else None,
                priority=priority,
                is_gone=kept.count == 0,
            )
            tx.tell(queue, told)
            if group is not None:
                tx.count_grouped(queue, group, ACTIVE, -1)
            if dedup is not None:
                release_dedup(tx, queue, dedup, key)
            if parent is not None:
                child_completed(tx, key, parent, verdict.result)
            if verdict.then:
                add(tx, verdict.then)
            finished[queue].append((key, kept))
    for queue, jobs in finished.items():
        tx.count(queue, counter_of(ACTIVE, 0), -len(jobs))
        tx.count(queue, counter_of(COMPLETED, 0), len(jobs))
        retain(tx, queue, COMPLETED, jobs)
    return outcomes


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
    return SettleOutcome.SETTLED, tx.update_rows(_COMPLETE, _ANY_ROWS, [value])[0]
