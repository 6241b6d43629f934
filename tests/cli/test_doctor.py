"""`bullpen doctor`: finds what is wrong, says what to do, and makes nothing worse."""

import sqlite3
import subprocess
from typing import Any

from bullpen import Queue, SqliteStore
from bullpen.job.record import JobRef
from bullpen.stores.base import WorkerInfo, WorkerState
from tests.cli.commands import COLUMNS, Answer, Folder
from tests.support import programs


def _found(answer: Answer) -> dict[str, tuple[str, str]]:
    findings: list[dict[str, Any]] = answer.json["findings"]
    assert all(one["fix"] for one in findings if one["level"] != "ok"), "what is not well has a remedy"
    return {one["check"]: (one["level"], one["message"]) for one in findings}


async def test_all_is_well(folder: Folder, store: SqliteStore) -> None:
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 0
    assert answer.json["ok"]
    found = _found(answer)
    assert {level for level, _ in found.values()} == {"ok"}
    wanted = {"python", "sqlite", "schema", "integrity", "sync", "disk", "size", "processes", "store", "workers"}
    assert wanted <= found.keys()


async def test_warnings_do_not_fail(shop: Folder, store: SqliteStore) -> None:
    """Waiting without a worker, priorities mixed, failed jobs, a paused queue, an active job nobody has."""
    await Queue(store, "mail").add("at-once", priority=0)
    await Queue(store, "paused").add("x")
    await Queue(store, "paused").pause()
    await Queue(store, "lost").add("x")
    await store.claim({"lost": 1}, worker="gone", lease_ms=60_000, request="claim")
    answer = shop.bullpen("doctor", "--json")
    assert answer.code == 0
    messages = [f"{one['check']}: {one['message']}" for one in answer.json["findings"] if one["level"] == "warn"]
    assert messages == [
        "queue lost: 1 job active, but not on a worker that is alive",
        "queue mail: 2 jobs waiting and no worker",
        "queue mail: mixes priority 0 (1) with others (1)",
        "queue mail: 2 jobs failed",
        "queue paused: paused with 1 job waiting",
        "queue reports: 1 job failed",
    ]
    told = shop.seen("doctor")
    assert max(map(len, told.lines)) <= COLUMNS
    assert "→ bullpen resume paused, if not meant" in "\n".join(told.lines)


async def test_stuck_jobs(folder: Folder, store: SqliteStore) -> None:
    stuck = (JobRef("mail", "7"),)
    await store.beat(WorkerInfo(name="w", state=WorkerState.PROCESSING, queues={"mail": 1}, stuck=stuck), ttl_ms=60_000)
    level, message = _found(folder.bullpen("doctor", "--json"))["workers"]
    assert (level, message) == ("warn", "w: 1 stuck (mail/7)")


def test_a_process_that_died(folder: Folder) -> None:
    folder.bullpen("enqueue", "work", "x")
    subprocess.run(programs.command(programs.claim_and_die, folder.file), cwd=programs.ROOT, check=False)
    assert _found(folder.bullpen("doctor", "--json"))["processes"][0] == "warn"


def test_less_sync_is_told(folder: Folder) -> None:
    folder.bullpen("enqueue", "work", "x")
    answer = folder.bullpen("--store", f"sqlite:{folder.file}?sync=normal", "doctor", "--json")
    assert _found(answer)["sync"][0] == "warn"


def test_no_store_is_unreachable(folder: Folder) -> None:
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 3
    assert not answer.json["ok"]
    assert _found(answer)["store"][0] == "bad"
    assert not folder.file.exists()


def test_a_file_from_the_future_is_bad_and_left_alone(folder: Folder) -> None:
    folder.bullpen("enqueue", "work", "x")
    db = sqlite3.connect(folder.file)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = folder.file.read_bytes()
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 1
    assert _found(answer)["schema"][0] == "bad"
    assert folder.file.read_bytes() == before


def test_damage_is_bad(folder: Folder) -> None:
    """Pages in the middle of the file overwritten: the check finds it before anyone trips over it."""
    for n in range(3):
        folder.bullpen("enqueue", "work", "x", f'{{"text": "{"x" * 20_000}", "n": {n}}}')
    db = sqlite3.connect(folder.file)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'job_ready'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with folder.file.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 1
    assert any(one["level"] == "bad" for one in answer.json["findings"])


def test_what_is_no_bullpen_file_is_bad(folder: Folder) -> None:
    folder.file.write_text("a text that is long enough to be taken for a file of something else" * 30)
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 1
    assert "store-corrupt" in answer.out
