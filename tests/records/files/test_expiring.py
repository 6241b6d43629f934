"""Checkpoints, and what becomes of files and blobs when their time is over."""

import asyncio
import os
from pathlib import Path

import pytest
from sqlalchemy import delete

from bullpen import (
    BlobMissing,
    CheckpointMissing,
    RecordMissing,
)
from bullpen.records.files.on import FilesOn
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from bullpen.records.tables.files import checkpoint as checkpoint_table
from bullpen.testing.clock import ManualClock
from tests.records.files.runs import blobs_of, end_run, make_run

DAY_MS = 86_400_000


def _age_all(tmp_path: Path) -> None:
    """Every blob was written two hours ago and more."""
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))


async def _save(records: Records, place: int, data: bytes, task: str = "t1", *, is_first: bool = False) -> str:
    sha256 = await records.files.blobs.put(data)
    async with records.database.writing() as connection:
        on = FilesOn(connection, records.database, records.files.blobs)
        await on.save_checkpoint(task, place, sha256=sha256, size=len(data), is_first=is_first)
    return sha256


# ── checkpoints ──────────────────────────────────────────────────────────────────────────


async def test_each_step_keeps_its_checkpoint(records: Records, tmp_path: Path) -> None:
    await make_run(records)
    assert await records.files.checkpoint("t1") is None
    first = await _save(records, 1, b"first")
    second = await _save(records, 3, b"second")
    found = await records.files.checkpoint("t1")
    assert found is not None
    assert (found.place, found.sha256, found.size) == (3, second, 6)
    async with records.database.reading() as connection:
        on = FilesOn(connection, records.database, records.files.blobs)
        earlier = [await on.checkpoint("t1", before=place) for place in (1, 2, 4)]
    assert [one and one.sha256 for one in earlier] == [None, first, second]
    told = [event.data for event in await records.runs.events("r1") if event.kind == ProgressKind.CHECKPOINT_SAVED]
    assert [one["place"] for one in told] == [1, 3]
    _age_all(tmp_path)
    assert (await records.files.expire()).blobs == 0


async def test_one_that_is_the_first_from_now_on_leaves_none_before_it(records: Records, tmp_path: Path) -> None:
    await make_run(records)
    for place in range(40):
        await _save(records, place, b"state %d" % place)
    last = await _save(records, 40, b"state", is_first=True)
    _age_all(tmp_path)
    assert (await records.files.expire()).blobs == 40
    assert await blobs_of(records) == {last}


async def test_another_task_that_has_a_copy_needs_nothing_of_the_first(records: Records, tmp_path: Path) -> None:
    """Also what older checkpoints name: the one that is copied may count on it."""
    await make_run(records)
    await make_run(records, run="r2", task="t2")
    names = [await _save(records, place, b"state %d" % place) for place in range(3)]
    async with records.database.writing() as connection:
        on = FilesOn(connection, records.database, records.files.blobs)
        assert await on.copy_checkpoint("t1", "t2", before=2)
        await connection.execute(checkpoint_table.delete().where(checkpoint_table.c.task == "t1"))
    copy = await records.files.checkpoint("t2")
    assert copy is not None
    assert (copy.place, copy.sha256) == (1, names[1])
    _age_all(tmp_path)
    await records.files.expire()
    assert await blobs_of(records) == set(names[:2])


async def test_a_checkpoint_whose_time_is_over_is_told(records: Records, clock: ManualClock) -> None:
    await make_run(records)
    await _save(records, 1, b"first")
    async with records.database.writing() as connection:
        over = checkpoint_table.update().values(expires_ms=clock.now_ms())
        await connection.execute(over)
    with pytest.raises(CheckpointMissing, match="t1"):
        await records.files.checkpoint("t1")


# ── the end ──────────────────────────────────────────────────────────────────────────────


async def test_an_input_that_no_run_took_goes_after_a_day(records: Records, clock: ManualClock, tmp_path: Path) -> None:
    given = await records.files.add_input("acme", "a.txt", b"one")
    _age_all(tmp_path)
    assert (await records.files.expire()).files == 0
    clock.advance(DAY_MS)
    with pytest.raises(RecordMissing):
        await records.files.get(given.id)
    expired = await records.files.expire()
    assert (expired.files, expired.blobs) == (1, 1)
    assert await blobs_of(records) == set()


async def test_what_a_run_has_stays_until_long_after_its_end(
    records: Records, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that waits for a person for weeks loses nothing."""
    await make_run(records)
    made = await records.files.keep_artifact("t1", "k", "a.txt", b"one")
    await _save(records, 1, b"first")
    _age_all(tmp_path)
    clock.advance(400 * DAY_MS)
    assert (await records.files.expire()).files == 0
    await end_run(records)
    clock.advance(29 * DAY_MS)
    assert (await records.files.expire()).checkpoints == 0
    assert await records.files.read(made.id) == b"one"
    monkeypatch.setenv("BULLPEN_RUN_FILES_DAYS", "7")
    expired = await records.files.expire()
    assert (expired.files, expired.checkpoints, expired.blobs) == (1, 1, 2)
    with pytest.raises(RecordMissing):
        await records.files.get(made.id)


async def test_many_files_expire_some_at_a_time(
    records: Records, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction, whoever else wants to write would wait for all of them."""
    monkeypatch.setattr("bullpen.records.files.expiring.TOGETHER", 2)
    for n in range(5):
        await records.files.add_input("acme", f"{n}.txt", b"one")
    clock.advance(DAY_MS)
    assert (await records.files.expire()).files == 5


async def test_a_young_blob_stays_though_nobody_names_it(records: Records, tmp_path: Path) -> None:
    name = await records.files.blobs.put(b"about to be named")
    assert (await records.files.expire()).blobs == 0
    _age_all(tmp_path)
    assert (await records.files.expire()).blobs == 1
    assert not await records.files.blobs.has(name)


async def test_a_blob_that_two_name_stays_for_the_second(records: Records, tmp_path: Path) -> None:
    await make_run(records)
    await make_run(records, "r2", "t2")
    for task in ("t1", "t2"):
        await records.files.keep_artifact(task, "k", "a.txt", b"shared")
    async with records.database.writing() as connection:
        from bullpen.records.tables.files import file

        await connection.execute(delete(file).where(file.c.run == "r1"))
    _age_all(tmp_path)
    assert (await records.files.expire()).blobs == 0
    (left,) = await records.files.of_run("r2")
    assert await records.files.read(left.id) == b"shared"


async def test_a_blob_that_is_gone_when_it_is_named_is_told(records: Records) -> None:
    """A row never names what is not there."""
    await make_run(records)
    sha256 = await records.files.blobs.put(b"state")
    await records.files.blobs.remove(sha256)
    async with records.database.writing() as connection:
        on = FilesOn(connection, records.database, records.files.blobs)
        with pytest.raises(BlobMissing):
            await on.save_checkpoint("t1", 1, sha256=sha256, size=5)
    assert await records.files.checkpoint("t1") is None


async def test_expiring_beside_those_who_keep_the_same_bytes_loses_nothing(records: Records) -> None:
    """Even with no age to protect them: every row that is written has its blob."""
    await make_run(records)

    async def keep(n: int) -> None:
        for again in range(8):
            try:
                await records.files.keep_artifact("t1", f"t1/{n}/{again}", "a.txt", b"contested %d" % again)
            except BlobMissing:
                continue  # told, and no row

    async def sweep() -> None:
        for _ in range(30):
            await records.files.expire(young_ms=-1_000)

    await asyncio.gather(keep(0), keep(1), sweep(), keep(2))
    rows = await records.files.of_run("r1")
    assert rows
    for row in rows:
        assert (await records.files.read(row.id)).startswith(b"contested")
