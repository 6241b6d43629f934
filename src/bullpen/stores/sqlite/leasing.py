"""Holding on: leases renewed, workers known by their heartbeat."""

from collections.abc import Sequence

import msgspec

from bullpen.job.record import Lease
from bullpen.stores.base import Renewal, WorkerInfo
from bullpen.stores.sqlite.rows import encode
from bullpen.stores.sqlite.schema import ACTIVE
from bullpen.stores.sqlite.tokens import key_and_token
from bullpen.stores.sqlite.transaction import Transaction


def renew(tx: Transaction, leases: Sequence[Lease], lease_ms: int) -> list[Renewal]:
    until_ms = tx.now_ms + lease_ms
    rows = tx.update_rows(
        "UPDATE job SET lease_until_ms = held.column3 FROM (VALUES",
        f") AS held WHERE job.key = held.column1 AND job.token = held.column2 AND job.state = {ACTIVE}"
        " RETURNING job.key, job.token, job.cancelling",
        [(*key_and_token(lease), until_ms) for lease in leases],
    )
    cancelling = {(key, token): reason for key, token, reason in rows}
    return [_renewal(cancelling, *key_and_token(lease)) for lease in leases]


def _renewal(cancelling: dict[tuple[int, str], str | None], key: int, token: str) -> Renewal:
    if (key, token) not in cancelling:
        return Renewal.LOST
    return Renewal.HELD if cancelling[key, token] is None else Renewal.CANCELLING


def beat(tx: Transaction, info: WorkerInfo, ttl_ms: int) -> None:
    for queue in info.queues:
        tx.queue(queue)
    info = msgspec.structs.replace(info, beat_ms=tx.now_ms)
    tx.db.execute(
        "INSERT OR REPLACE INTO worker(name, until_ms, info) VALUES(?, ?, ?)",
        (info.name, tx.now_ms + ttl_ms, encode(info)),
    )
