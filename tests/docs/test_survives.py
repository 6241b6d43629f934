"""What an acknowledged add survives, for the lines of the table that no other test shows."""

import asyncio
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from bullpen import Queue, SqliteStore, StoreFull
from bullpen.stores.sqlite.connection import Sync
from tests.support.sqlite_harness import check_file

_ADD_AND_DIE = """
import asyncio, os, signal, sys
from bullpen import Queue, SqliteStore

async def main():
    store = SqliteStore(sys.argv[1], sync=sys.argv[2])
    await store.open()
    await Queue(store, "mail").add("welcome", id="the-job")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


async def _ids(path: Path) -> list[str]:
    """The ids of the jobs that wait in this file, as a store finds them."""
    store = SqliteStore(path)
    await store.open()
    page = await Queue(store, "mail").jobs("waiting")
    await store.close()
    check_file(path)
    return [job.id for job in page.jobs]


@pytest.mark.parametrize("sync", ["full", "normal"])
async def test_a_job_survives_the_kill_of_its_producer(path: Path, sync: Sync) -> None:
    """Killed in the instruction after `add` returned: the job is there, with either setting."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _ADD_AND_DIE, str(path), sync)
    assert await process.wait() == -signal.SIGKILL
    assert await _ids(path) == ["the-job"]


async def test_a_job_survives_a_full_disk(path: Path) -> None:
    """The add that found no room says so and leaves nothing; what was there before stays, and room helps."""
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, "mail")
    await queue.add("welcome", id="before")
    db = store._file.writer._db
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull):
        await queue.add("welcome", {"long": "x" * 200_000}, id="no-room")
    db.execute("PRAGMA max_page_count = 1000000")
    await queue.add("welcome", {"long": "x" * 200_000}, id="after")
    await store.close()
    assert await _ids(path) == ["before", "after"]


async def test_a_job_is_in_a_backup_of_a_file_in_use(path: Path, tmp_path: Path) -> None:
    """SQLite's own backup sees every commit, also those that are not yet in the main file."""
    store = SqliteStore(path)
    await store.open()
    await Queue(store, "mail").add("welcome", id="the-job")
    copy = tmp_path / "backup.db"
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    await store.close()
    assert await _ids(copy) == ["the-job"]


async def test_a_job_is_in_a_copy_of_a_closed_file(path: Path, tmp_path: Path) -> None:
    """After a clean close all is in the one file."""
    store = SqliteStore(path)
    await store.open()
    await Queue(store, "mail").add("welcome", id="the-job")
    await store.close()
    copy = tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    assert await _ids(copy) == ["the-job"]


async def test_a_careless_copy_may_lack_the_newest_jobs(path: Path, tmp_path: Path) -> None:
    """Why the docs warn: while the file is in use, its newest commits are in the log beside it."""
    store = SqliteStore(path)
    await store.open()
    await Queue(store, "mail").add("welcome", id="the-job")
    copy = tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    await store.close()
    assert "the-job" not in copy.read_bytes().decode("latin-1")
