"""The read model beside what it tells of."""

from collections import Counter
from typing import Any

from sqlalchemy import select

from bullpen import State
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.records import Records
from bullpen.records.tables.model import job as job_table
from bullpen.records.tables.model import job_tag, reason
from bullpen.stores.base import Store

_STATES = tuple(State)


async def rows_of(records: Records) -> dict[str, dict[str, Any]]:
    """What the model holds of each job, without what is its own affair."""
    async with records.database.reading() as connection:
        rows = (await connection.execute(select(job_table))).all()
        tags = (await connection.execute(select(job_tag.c.key, job_tag.c.tag))).all()
    own = {"key", "scan", "ready_ms"}
    by_key: dict[int, list[str]] = {}
    for key, tag in tags:
        by_key.setdefault(key, []).append(tag)
    assert {row.key for row in rows} >= set(by_key)
    assert all(sorted(by_key.get(row.key, [])) == row.tags for row in rows)
    return {f"{row.queue}/{row.id}": {k: v for k, v in row._mapping.items() if k not in own} for row in rows}


async def check_model(records: Records, store: Store) -> None:
    """The same rows as a model that is made anew, and counts as the store's own."""
    fed = await rows_of(records)
    counted = await records.jobs.counts()
    for queue in await store.queues():
        counts = await store.counts(queue)
        own = {state: getattr(counts, state.value.replace("-", "_")) for state in _STATES}
        assert counted.get(queue, {}) == {state: n for state, n in own.items() if n}, queue
    assert Counter((row["queue"], row["state"]) for row in fed.values()) == Counter(
        {(queue, state.value): n for queue, states in counted.items() for state, n in states.items()}
    )
    await _check_reasons(records, fed)
    looked = {}
    for queue in await store.queues():
        for state in _STATES:
            for record in (await store.jobs(queue, state, limit=10_000)).jobs:
                looked[f"{queue}/{record.id}"] = (record.state.value, record.name, record.tenant, record.finished_ms)
    assert {name: (r["state"], r["name"], r["tenant"], r["finished_ms"]) for name, r in fed.items()} == looked


async def _check_reasons(records: Records, rows: dict[str, dict[str, Any]]) -> None:
    """The counts of reasons are those of the rows, and of nothing else."""
    async with records.database.reading() as connection:
        kept = {tuple(row[:-1]): row.jobs for row in await connection.execute(select(reason))}
    failed = [row for row in rows.values() if row["state"] == State.FAILED]
    assert kept == Counter((row["queue"], row["name"], row["fingerprint"], row["tenant"] or "") for row in failed)


async def check_rescan(records: Records, feeder: ModelFeeder) -> None:
    """A look at every job finds nothing else."""
    fed = await rows_of(records)
    await feeder.rescan()
    await feeder.catch_up()
    assert await rows_of(records) == fed
    await _check_reasons(records, fed)
