"""`bullpen doctor`: finds what is wrong, says what to do, and makes nothing worse."""

import sqlite3
import subprocess
from typing import Any

import pytest
from cryptography.fernet import Fernet

from bullpen import Queue, Store
from bullpen.job.record import JobRef
from bullpen.records.records import Records
from bullpen.records.sealing import Sealer
from bullpen.records.settings import Alerts
from bullpen.records.webhooks import NewWebhook, Webhooks
from bullpen.stores.base import WorkerInfo, WorkerState
from tests.cli.commands import COLUMNS, Answer, Folder
from tests.support import programs
from tests.support.migrated import migrated_database
from tests.support.places import FilePlace, only_on_sqlite


def _found(answer: Answer) -> dict[str, tuple[str, str]]:
    findings: list[dict[str, Any]] = answer.json["findings"]
    assert all(one["fix"] for one in findings if one["level"] != "ok"), "what is not well has a remedy"
    return {one["check"]: (one["level"], one["message"]) for one in findings}


@only_on_sqlite
async def test_all_is_well(folder: Folder, store: Store) -> None:
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 0
    assert answer.json["ok"]
    found = _found(answer)
    # What walls the machine gives is not the store's affair.
    assert {level for check, (level, _) in found.items() if check != "sandbox"} == {"ok"}
    wanted = {"sandbox"} | {
        "python",
        "sqlite",
        "schema",
        "integrity",
        "sync",
        "disk",
        "size",
        "processes",
        "store",
        "workers",
    }
    assert wanted <= found.keys()


async def test_warnings_do_not_fail(shop: Folder, store: Store) -> None:
    """Waiting without a worker, priorities mixed, failed jobs, a paused queue, an active job nobody has."""
    await Queue(store, "mail").add("at-once", priority=0)
    await Queue(store, "paused").add("x")
    await Queue(store, "paused").pause()
    await Queue(store, "lost").add("x")
    await store.claim({"lost": 1}, worker="gone", lease_ms=60_000, request="claim")
    answer = shop.bullpen("doctor", "--json")
    assert answer.code == 0
    warnings = [f"{one['check']}: {one['message']}" for one in answer.json["findings"] if one["level"] == "warn"]
    assert [one for one in warnings if one.startswith("queue ")] == [
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


async def test_stuck_jobs(folder: Folder, store: Store) -> None:
    stuck = (JobRef("mail", "7"),)
    await store.beat(WorkerInfo(name="w", state=WorkerState.PROCESSING, queues={"mail": 1}, stuck=stuck), ttl_ms=60_000)
    findings = folder.bullpen("doctor", "--json").json["findings"]
    # Among others: where commands take long to start, the worker was not seen for a while either.
    assert ("warn", "w: 1 stuck (mail/7)") in [(one["level"], one["message"]) for one in findings]


@only_on_sqlite
async def test_secrets_that_are_not_encrypted(folder: Folder, store: Store) -> None:
    key = Fernet.generate_key().decode()
    assert "secrets" not in _found(folder.bullpen("doctor", "--json"))
    async with await Records.open(f"sqlite:{folder.path / '.bullpen' / 'records.db'}") as records:
        made, _ = await records.webhooks.create(NewWebhook(name="ops", url="https://example.com"), created_by="ann")
        level, message = _found(folder.bullpen("doctor", "--json"))["secrets"]
        assert (level, message) == ("warn", "1 of webhooks are not encrypted in the records")
        await Webhooks(records.database, Sealer([key])).secret(made.id)
    assert _found(folder.bullpen("doctor", "--json", BULLPEN_SECRET_KEY=key))["secrets"][0] == "ok"
    assert "without a key" in _found(folder.bullpen("doctor", "--json"))["secrets"][1]
    assert _found(folder.bullpen("doctor", "--json", BULLPEN_SECRET_KEY="none"))["secrets"][0] == "bad"


@only_on_sqlite
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_addresses_of_slack_that_are_not_encrypted(
    folder: Folder, store: Store, kind: str, request: pytest.FixtureRequest
) -> None:
    key = Fernet.generate_key().decode()
    address = f"sqlite:{folder.path / 'own.db'}"
    if kind == "postgres":
        address = migrated_database(request.getfixturevalue("postgres_server"))

    def secrets(**more: str) -> tuple[str, str] | None:
        return _found(folder.bullpen("doctor", "--json", BULLPEN_RECORDS=address, **more)).get("secrets")

    async with await Records.open(address) as records:
        await records.alerts.save("mailed", condition={}, channel={"email": "ann@example.com"})
        assert secrets() is None
        made = await records.alerts.save("told", condition={}, channel={"slack": "https://hooks.slack.com/x"})
        assert secrets() == ("warn", "1 of alerts are not encrypted in the records")
        await records.webhooks.create(NewWebhook(name="ops", url="https://example.com"), created_by="ann")
        assert secrets() == ("warn", "1 of webhooks and 1 of alerts are not encrypted in the records")
        await Alerts(records.database, Sealer([key])).get(made.id)
        assert secrets() == ("warn", "1 of webhooks are not encrypted in the records")


@only_on_sqlite
def test_a_process_that_died(folder: Folder, place: FilePlace) -> None:
    folder.bullpen("enqueue", "work", "x")
    subprocess.run(programs.command(programs.claim_and_die, place.path), cwd=programs.ROOT, check=False)
    assert _found(folder.bullpen("doctor", "--json"))["processes"][0] == "warn"


@only_on_sqlite
def test_less_sync_is_told(folder: Folder, place: FilePlace) -> None:
    folder.bullpen("enqueue", "work", "x")
    answer = folder.bullpen("--store", f"sqlite:{place.path}?sync=normal", "doctor", "--json")
    assert _found(answer)["sync"][0] == "warn"


@only_on_sqlite
def test_no_store_is_unreachable(folder: Folder, place: FilePlace) -> None:
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 3
    assert not answer.json["ok"]
    assert _found(answer)["store"][0] == "bad"
    assert not place.path.exists()


@only_on_sqlite
def test_a_file_from_the_future_is_bad_and_left_alone(folder: Folder, place: FilePlace) -> None:
    folder.bullpen("enqueue", "work", "x")
    db = sqlite3.connect(place.path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = place.path.read_bytes()
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 1
    assert _found(answer)["schema"][0] == "bad"
    assert place.path.read_bytes() == before


@only_on_sqlite
def test_damage_is_bad(folder: Folder, place: FilePlace) -> None:
    """Pages in the middle of the file overwritten: the check finds it before anyone trips over it."""
    for n in range(3):
        folder.bullpen("enqueue", "work", "x", f'{{"text": "{"x" * 20_000}", "n": {n}}}')
    db = sqlite3.connect(place.path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'job_ready'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with place.path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 1
    assert any(one["level"] == "bad" for one in answer.json["findings"])


@only_on_sqlite
def test_what_is_no_bullpen_file_is_bad(folder: Folder, place: FilePlace) -> None:
    place.path.write_text("a text that is long enough to be taken for a file of something else" * 30)
    answer = folder.bullpen("doctor", "--json")
    assert answer.code == 1
    assert "store-corrupt" in answer.out
