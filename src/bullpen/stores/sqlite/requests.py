"""Remembering answers: the same request again does nothing and gets the first answer."""

from collections.abc import Callable

import msgspec

from bullpen.errors import BadOption
from bullpen.job.record import ClaimedJob, JobRef, Lease
from bullpen.stores.base import REQUEST_MEMORY_MS, Added, Claimed, Delivery, Exchanged, SettleOutcome
from bullpen.stores.sqlite.rows import SELECT, record_from
from bullpen.stores.sqlite.schema import ACTIVE
from bullpen.stores.sqlite.tokens import lease_token
from bullpen.stores.sqlite.transaction import Transaction, as_list


class ClaimAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exchange's answer without the jobs themselves, which are read again if it is asked for again."""

    token: str = ""
    keys: tuple[int, ...] = ()
    settled: tuple[SettleOutcome, ...] = ()
    next_due_ms: int | None = None
    failed: tuple[JobRef, ...] = ()
    abandoned: bool = False
    """Given up before it arrived: it may settle, but claims nothing."""


_encode = msgspec.msgpack.Encoder().encode
_decode_added = msgspec.msgpack.Decoder(list[Added]).decode
_decode_claim = msgspec.msgpack.Decoder(ClaimAnswer).decode


def answer_add(tx: Transaction, request: str, add: Callable[[], list[Added]]) -> list[Added]:
    known = _recall(tx, request)
    if known is not None:
        return _decode_added(known)
    answer = add()
    _remember(tx, request, _encode(answer), REQUEST_MEMORY_MS)
    return answer


def answer_signal(tx: Transaction, request: str, signal: Callable[[], Delivery]) -> Delivery:
    known = _recall(tx, request)
    if known is not None:
        return Delivery(known.decode())
    answer = signal()
    _remember(tx, request, answer.encode(), REQUEST_MEMORY_MS)
    return answer


def answer_exchange(
    tx: Transaction, request: str, lease_ms: int, token: str, exchange: Callable[[bool], Exchanged]
) -> Exchanged:
    """`exchange` is told whether it may claim."""
    known = recall_claim(tx, request)
    if known is not None and not known.abandoned:
        return _again(tx, known)
    answer = exchange(known is None)
    keys = tuple(int(claimed.lease.token.partition(":")[0]) for claimed in answer.claimed.jobs)
    stored = ClaimAnswer(token, keys, answer.settled, answer.claimed.next_due_ms, answer.failed)
    _remember(tx, request, _encode(stored), max(lease_ms, REQUEST_MEMORY_MS))
    return answer


def recall_claim(tx: Transaction, request: str) -> ClaimAnswer | None:
    known = _recall(tx, request)
    try:
        return None if known is None else _decode_claim(known)
    except msgspec.ValidationError:
        raise BadOption(f"request: {request!r} was an add's; it claims nothing") from None


def expect_no_claim(tx: Transaction, request: str) -> None:
    """The request was abandoned and is not known: should it arrive after all, it is to claim nothing."""
    _remember(tx, request, _encode(ClaimAnswer(abandoned=True)), REQUEST_MEMORY_MS)


def forget_old(tx: Transaction) -> None:
    """Drop what is remembered longer than promised: answers, ids, workers."""
    for table in ("request", "id_memory", "worker"):
        tx.db.execute(f"DELETE FROM {table} WHERE until_ms <= ?", (tx.now_ms,))


def _again(tx: Transaction, answer: ClaimAnswer) -> Exchanged:
    """The first answer, with those of its jobs that are still held under it."""
    rows = tx.db.execute(
        f"{SELECT} WHERE job.key IN (SELECT value FROM json_each(?)) AND job.state = {ACTIVE} AND job.token = ?",
        (as_list(answer.keys), answer.token),
    ).fetchall()
    by_key = {row[0]: row for row in rows}
    jobs = []
    for key in answer.keys:
        if key in by_key:
            queue = tx.db.execute("SELECT queue FROM job WHERE key = ?", (key,)).fetchone()[0]
            job = record_from(by_key[key], tx.queue_name(queue))
            jobs.append(ClaimedJob(Lease(job.ref, lease_token(key, answer.token), job.epoch), job))
    return Exchanged(answer.settled, Claimed(tuple(jobs), answer.next_due_ms), answer.failed)


def _recall(tx: Transaction, request: str) -> bytes | None:
    row = tx.db.execute("SELECT answer FROM request WHERE id = ? AND until_ms > ?", (request, tx.now_ms)).fetchone()
    return None if row is None else bytes(row[0])


def _remember(tx: Transaction, request: str, answer: bytes, for_ms: int) -> None:
    tx.db.execute(
        "INSERT OR REPLACE INTO request(id, until_ms, answer) VALUES(?, ?, ?)",
        (request, tx.now_ms + for_ms, answer),
    )
