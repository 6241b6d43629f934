"""Files that are none of ours, damaged, or where they cannot be."""

import json
import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

from bullpen import Queue, SqliteStore, StoreCorrupt, StoreReadOnly, StoreTooNew
from tests.bad_input.refusing import all_of, check_error
from tests.support import programs
from tests.support.programs import command, run

# ── files ────────────────────────────────────────────────────────────────────────────────


async def _jobs_in(path: Path) -> list[str]:
    store = SqliteStore(path)
    await store.open()
    found = [job.id for job in (await Queue(store, "work").jobs("waiting")).jobs]
    await store.close()
    return found


async def _file_with_one_job(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await Queue(store, "work").add("mail", {"n": 1}, id="kept")
    await store.close()


async def test_a_file_of_garbage(path: Path) -> None:
    path.write_bytes(b"this was never a database " * 400)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt) as caught:
        await SqliteStore(path).open()
    check_error(caught.value, StoreCorrupt, "store-corrupt", str(path), "restore a backup")
    assert path.read_bytes() == before


async def test_a_file_with_a_damaged_page(path: Path) -> None:
    """Told as such by whoever touches it; what lies elsewhere is still readable."""
    await _file_with_one_job(path)
    db = sqlite3.connect(path)
    (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'body'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, "work")
    for touching in (
        queue.job("kept").record(),
        queue.add("mail"),
        store.claim({"work": 1}, worker="w", lease_ms=30_000, request="1"),
    ):
        with pytest.raises(StoreCorrupt) as caught:
            await touching
        check_error(caught.value, StoreCorrupt, "store-corrupt", str(path))
    assert (await queue.counts()).waiting == 1
    await store.close()


async def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "queues"
    folder.mkdir()
    with pytest.raises(StoreReadOnly) as caught:
        await SqliteStore(folder).open()
    check_error(caught.value, StoreReadOnly, "store-read-only", str(folder))
    assert list(folder.iterdir()) == []


async def test_a_file_in_place_of_a_folder(path: Path) -> None:
    path.write_text("a file")
    below = path / "queue.db"
    with pytest.raises(StoreReadOnly) as caught:
        await SqliteStore(below).open()
    check_error(caught.value, StoreReadOnly, "store-read-only", str(below))
    assert path.read_text() == "a file"


@pytest.mark.parametrize(
    "folder_mode, file_mode", [(0o755, 0o444), (0o777, 0o444), (0o755, 0o666)], ids=["both", "file", "folder"]
)
async def test_a_place_without_the_right_to_write(folder_mode: int, file_mode: int) -> None:
    """Permissions do not bind root, so another user tries."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "queue.db"
        await _file_with_one_job(path)
        path.chmod(file_mode)
        Path(name).chmod(folder_mode)
        error = json.loads(await run(command(programs.open_without_rights, path)))
        assert error["code"] == "store-read-only"
        assert str(path) in error["message"]
        if os.geteuid() != 0:
            Path(name).chmod(0o755)
            path.chmod(0o644)
        assert await _jobs_in(path) == ["kept"]


# ── versions ─────────────────────────────────────────────────────────────────────────────


def _set_version(path: Path, version: int) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()


async def test_a_file_of_a_newer_version(path: Path) -> None:
    await _file_with_one_job(path)
    _set_version(path, 999)
    before = path.read_bytes()
    with pytest.raises(StoreTooNew) as caught:
        await SqliteStore(path).open()
    check_error(caught.value, StoreTooNew, "store-too-new", str(path), "999", "upgrade")
    assert path.read_bytes() == before


async def test_a_file_that_is_migrated_under_an_older_process(store: SqliteStore, path: Path) -> None:
    """A newer Bullpen was started beside this one: from then on this one refuses, reading and writing."""
    queue = Queue(store, "work")
    await queue.add("mail", id="kept")
    before = await all_of(store)
    _set_version(path, 999)
    for asked in (
        queue.add("mail"),
        queue.counts(),
        queue.job("kept").record(),
        queue.job("kept").remove(),
        store.claim({"work": 1}, worker="w", lease_ms=30_000, request="1"),
        store.wait(["work"], timeout_ms=0),
    ):
        with pytest.raises(StoreTooNew) as caught:
            await asked
        check_error(caught.value, StoreTooNew, "store-too-new", str(path), "999", "upgrade")
    _set_version(path, 1)
    assert await all_of(store) == before
    assert (await queue.add("mail")).outcome == "added"
