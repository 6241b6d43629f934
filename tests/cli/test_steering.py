"""The verbs that change something."""

import json
from pathlib import Path

from bullpen import EntryKind, EntryState, JournalEntry, Queue, Store
from bullpen.job.verdicts import Parked, Settlement
from tests.cli.commands import Folder
from tests.support.places import only_on_sqlite


def test_enqueue_makes_the_store_and_the_job(folder: Folder) -> None:
    options = [
        "--delay",
        "5m",
        "--priority",
        3,
        "--attempts",
        4,
        "--tenant",
        "acme",
        "--workspace",
        "x",
        "--tag",
        "a",
        "--tag",
        "b",
    ]
    answer = folder.bullpen("enqueue", "mail", "welcome", '{"n": 1}', "--id", "one", *options)
    assert (answer.code, answer.out) == (0, "added mail/one\n")
    job = folder.bullpen("job", "mail", "one", "--json").json
    assert (job["state"], job["data"], job["priority"], job["attempts"]) == ("delayed", {"n": 1}, 3, 4)
    assert job["workspace"] == "x"
    assert (job["tenant"], job["tags"], job["run_at_ms"] - job["added_ms"]) == ("acme", ["a", "b"], 300_000)
    again = folder.bullpen("enqueue", "mail", "welcome", "--id", "one", "--json").json
    assert again == {"queue": "mail", "id": "one", "outcome": "duplicate"}


def test_enqueue_reads_its_input(folder: Folder) -> None:
    assert folder.bullpen("enqueue", "mail", "x", "-", given='{"from": "input"}').code == 0
    job = folder.bullpen("job", "mail", 1, "--json").json
    assert job["data"] == {"from": "input"}
    assert job["priority"] == 5, "as job types have it, so that it does not overtake their jobs"


def test_retry_one(shop: Folder) -> None:
    assert shop.bullpen("retry", "mail", 1).out == "1 job waits again in mail\n"
    assert shop.bullpen("job", "mail", 1, "--json").json["state"] == "prioritized"
    assert shop.bullpen("retry", "mail", 1).code == 1, "it has not finished"


def test_retry_all_shows_a_bar_at_a_terminal(shop: Folder) -> None:
    answer = shop.seen("retry", "mail", "--all")
    assert "retrying" in answer.out
    assert "2 of 2" in answer.out
    assert answer.lines[-1].endswith("2 jobs wait again in mail")
    assert shop.bullpen("retry", "mail", "--all", "--json").json == {"retried": 0}


@only_on_sqlite  # refused before a store is asked
def test_retry_wants_to_know_which(shop: Folder) -> None:
    assert shop.bullpen("retry", "mail").code == 2
    assert shop.bullpen("retry", "mail", 1, "--all").code == 2


async def test_cancel(shop: Folder, store: Store) -> None:
    """A job that waits ends; one that runs is told to; one that has ended is a no."""
    assert shop.bullpen("cancel", "mail", "later", "--reason", "too late").out == "mail/later is cancelled\n"
    assert "too late" in shop.bullpen("job", "mail", "later", "--json").json["failure"]["message"]
    assert shop.bullpen("cancel", "mail", "later").code == 1
    await store.claim({"mail": 1}, worker="w", lease_ms=60_000, request="claim")
    assert shop.bullpen("cancel", "mail", "next", "--json").json == {"outcome": "cancelling"}
    assert "is to stop" in shop.bullpen("jobs", "mail", "--state", "active").out


def test_pause_and_resume(shop: Folder) -> None:
    assert shop.bullpen("pause", "mail").code == 0
    assert shop.bullpen("queues", "--json").json[0]["paused"]
    assert "paused" in shop.bullpen("queues").out
    assert shop.bullpen("resume", "mail", "--json").json == {"queue": "mail", "paused": False}


# ── dead letters ─────────────────────────────────────────────────────────────────────────


@only_on_sqlite  # tests/deadletters has the filters on each store
def test_dead_finds_by_filter(shop: Folder) -> None:
    def found(*filters: str) -> list[str]:
        return [f"{job['queue']}/{job['id']}" for job in shop.bullpen("dead", *filters, "--json").json]

    assert sorted(found()) == ["mail/1", "mail/2", "reports/may"]
    assert found("--queue", "reports") == found("--tenant", "acme") == found("--tag", "big") == ["reports/may"]
    assert found("--error", "ValueError") == found("--error", "no da") == found("--name", "monthly") == ["reports/may"]
    assert found("--kind", "timeout") == found("--until", "1h") == found("--since", "2999-01-01") == []
    assert len(found("--since", "1h")) == 3
    assert len(found("--limit", "1")) == 1


def test_dead_groups_lead_to_their_jobs(shop: Folder) -> None:
    groups = shop.bullpen("dead", "--group", "--json").json
    assert [(group["queue"], group["count"]) for group in groups] == [("mail", 2), ("reports", 1)]
    fingerprint = groups[0]["fingerprint"]
    assert fingerprint in shop.bullpen("dead", "--group").out
    assert shop.bullpen("dead", "retry", "--fingerprint", fingerprint, "--json").json == {"retried": 2}
    assert [group["queue"] for group in shop.bullpen("dead", "--group", "--json").json] == ["reports"]


@only_on_sqlite  # refused before a store is asked
def test_dead_acts_on_everything_only_if_told_so(shop: Folder) -> None:
    for act in ("retry", "purge", "export"):
        answer = shop.bullpen("dead", act)
        assert (answer.code, answer.out) == (2, "")
        assert "--all" in answer.err


def test_dead_purge(shop: Folder) -> None:
    assert shop.bullpen("dead", "--queue", "mail", "purge", "--limit", 1).out == "1 job removed\n"
    answer = shop.seen("dead", "purge", "--queue", "mail")
    assert "removing" in answer.out
    assert answer.lines[-1].endswith("1 job removed")
    assert [job["queue"] for job in shop.bullpen("dead", "--json").json] == ["reports"]


def test_dead_export(shop: Folder) -> None:
    lines = shop.bullpen("dead", "export", "--all").items
    assert len(lines) == 3
    assert lines[-1]["data"] == {"month": "May"}
    told = shop.seen("dead", "export", "--queue", "mail", "--output", "dead.jsonl")
    assert "exporting" in told.out
    assert told.lines[-1].endswith("2 jobs written to dead.jsonl")
    written = (Path(shop.path) / "dead.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in written] == ["1", "2"]
    assert shop.bullpen("dead", "export", "--all", "--output", "no/such/folder").code == 2


async def test_a_long_retry_takes_all(folder: Folder, store: Store) -> None:
    """More than one portion."""
    queue = Queue(store, "many")
    jobs = await queue.add_bulk([queue.prepare("x") for _ in range(1_200)])
    for job in jobs:
        await job.cancel()
    assert folder.bullpen("retry", "many", "--all", "--json").json == {"retried": 1_200}


async def test_signal_and_promote(shop: Folder, store: Store) -> None:
    """A job that waits for a signal goes on; one that does not keeps it; the job's view tells what it waits for."""
    ref = (await store.claim({"mail": 1}, worker="w", lease_ms=60_000, request="claim")).jobs[0].lease
    waiting = JournalEntry(0, "approved", EntryKind.WAIT, EntryState.OPEN, started_ms=1)
    await store.append_journal(ref.ref, [waiting], epoch=ref.epoch)
    await store.settle([Settlement(ref, Parked(None, ("approved",), "waits for 'approved'"))], request="park")
    told = shop.bullpen("job", "mail", ref.ref.id).out
    assert "waits for approved" in told
    assert "0  wait  approved  waits" in told
    assert "is kept until the job asks" in shop.bullpen("signal", "mail", ref.ref.id, "other").out
    answer = shop.bullpen("signal", "mail", ref.ref.id, "approved", '{"by": "ada"}', "--json")
    assert answer.json == {"delivery": "woken"}
    assert shop.bullpen("signal", "mail", "nobody", "approved").code == 1
    assert shop.bullpen("signal", "mail", ref.ref.id, "approved", "{").code == 2
    assert shop.bullpen("promote", "mail", "later").out == "mail/later waits to run\n"
    assert shop.bullpen("promote", "mail", "later").code == 1
    assert shop.bullpen("job", "mail", ref.ref.id, "--json").json["journal"][0]["name"] == "approved"
