"""The verbs that only look: as tables for people, as JSON for programs."""

import re
import shlex

import pytest

from bullpen import Store
from bullpen.stores.base import WorkerInfo, WorkerState
from tests.cli.commands import COLUMNS, Folder
from tests.cli.conftest import LONG
from tests.support.places import only_on_sqlite

_TABLES = [
    ("queues",),
    ("jobs", "mail"),
    ("jobs", "mail", "--state", "failed"),
    ("dead",),
    ("dead", "--group"),
    ("workers",),
]


async def _beat(store: Store) -> None:
    queues = {"mail": 5, "reports": 2, "a-queue-with-a-long-name": 7}
    worker = WorkerInfo(name="a-worker-with-a-name-that-is-long-1234", state=WorkerState.PROCESSING, queues=queues)
    await store.beat(worker, ttl_ms=60_000)


@only_on_sqlite  # tables are those of the command line
@pytest.mark.parametrize("words", _TABLES, ids=" ".join)
async def test_a_table_fits_the_terminal(shop: Folder, store: Store, words: tuple[str, ...]) -> None:
    """At most 80 columns, each column at one place, and nothing in the data steers the terminal."""
    await _beat(store)
    answer = shop.seen(*words)
    assert answer.code == 0
    table = [line for line in answer.lines if not line.startswith("more: ")]
    assert len(table) > 1
    assert max(map(len, table)) <= COLUMNS
    # Between two titles there is a gap of two that runs through all lines.
    through = "".join(" " if all(line[n : n + 1] in ("", " ") for line in table) else "x" for n in range(COLUMNS))
    assert len(re.findall(r"x {2,}(?=x)", through)) == len(table[0].split()) - 1
    assert "\x1b[31mcolour" not in answer.out


@only_on_sqlite  # colours are those of the command line
@pytest.mark.parametrize("words", [*_TABLES, ("doctor",), ("job", "mail", "next")], ids=" ".join)
async def test_colour_is_for_terminals_that_want_it(shop: Folder, store: Store, words: tuple[str, ...]) -> None:
    await _beat(store)
    assert shop.seen(*words).has_colour
    assert not shop.seen(*words, NO_COLOR="1").has_colour
    assert not shop.seen(*words, TERM="dumb").has_colour
    assert not shop.bullpen(*words).has_colour


def test_nothing_is_cut_off_where_a_program_reads(shop: Folder) -> None:
    """Whoever greps for a word in a message finds it."""
    assert "no table of eighty columns has room" in shop.bullpen("jobs", "mail").out


def test_queues(shop: Folder) -> None:
    mail, reports = shop.bullpen("queues", "--json").json
    assert (mail["queue"], mail["failed"], mail["completed"], mail["delayed"]) == ("mail", 2, 1, 1)
    assert mail["oldest_waiting_ms"] >= 0
    assert reports["oldest_waiting_ms"] is None
    heading, first, second = shop.bullpen("queues").lines
    assert heading.split() == ["queue", "waiting", "prioritized", "delayed", "active", "completed", "failed", "oldest"]
    assert first.split()[:7] == ["mail", "0", "1", "1", "0", "1", "2"]
    assert second.split()[-1] == "–"


def test_jobs_in_pages(shop: Folder) -> None:
    """The cursor of one page leads to the next; each state has its own."""
    first = shop.bullpen("jobs", "mail", "--state", "failed", "--limit", 1, "--json").json
    cursor = first["next_cursors"]["failed"]
    second = shop.bullpen("jobs", "mail", "--state", "failed", "--cursor", cursor, "--json").json
    assert [job["id"] for job in first["jobs"] + second["jobs"]] == ["1", "2"]
    assert second["next_cursors"] == {}
    newest = shop.bullpen("jobs", "mail", "--state", "failed", "--newest", "--json").json
    assert [job["id"] for job in newest["jobs"]] == ["2", "1"]
    told = shop.bullpen("jobs", "mail", "--state", "failed", "--limit", 1).lines[-1]
    assert told == f"more: bullpen jobs mail --state failed --cursor {shlex.quote(cursor)}"


def test_jobs_of_all_states(shop: Folder) -> None:
    states = [job["state"] for job in shop.bullpen("jobs", "mail", "--json").json["jobs"]]
    assert states == ["prioritized", "delayed", "failed", "failed", "completed"]
    assert "in 59 min" in shop.bullpen("jobs", "mail", "--state", "delayed").out
    assert shop.bullpen("jobs", "mail", "--state", "active").out == "No active jobs in mail.\n"


@only_on_sqlite  # refused before a store is asked
def test_a_cursor_needs_a_state(shop: Folder) -> None:
    answer = shop.bullpen("jobs", "mail", "--cursor", "1,1")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith("[bad-option]\n")


def test_one_job(shop: Folder) -> None:
    """Record, data, error with stack, attempts, log."""
    job = shop.bullpen("job", "reports", "may", "--json").json
    assert (job["data"], job["tenant"], job["tags"], job["logs"]) == (
        {"month": "May"},
        "acme",
        ["big"],
        ["began", "gave up"],
    )
    assert job["failure"]["type"] == "ValueError"
    told = shop.bullpen("job", "reports", "may").out
    for part in ("reports/may  failed", '"month": "May"', "ValueError: no data", "File report.py", "gave up", "1 of 1"):
        assert part in told
    assert '"sent"' in shop.bullpen("job", "mail", 3).out
    assert LONG not in shop.bullpen("job", "mail", 1).out, "the escape in it would colour the terminal"


def test_events(shop: Folder) -> None:
    """All that the log has, or what came after a cursor."""
    all_of_it = shop.bullpen("events", "reports", "--json").items
    assert [event["kind"] for event in all_of_it][:2] == ["added", "waiting"]
    cursor = all_of_it[1]["cursor"]
    assert shop.bullpen("events", "reports", "--from", cursor, "--json").items == all_of_it[2:]
    told = shop.seen("events", "reports")
    assert max(map(len, told.lines)) <= COLUMNS
    assert "ValueError: no data" in told.out


def test_events_are_followed_until_interrupted(shop: Folder) -> None:
    with shop.started("events", "mail", "--follow", "--from", "start", "--json") as following:
        assert following.stdout is not None
        assert '"kind":"added"' in following.stdout.readline()
        while '"later"' not in following.stdout.readline():
            pass
        assert shop.bullpen("enqueue", "mail", "news", "--id", "fresh").code == 0
        while '"fresh"' not in following.stdout.readline():
            pass
        following.send_signal(2)
        assert following.wait(30) == 0


async def test_workers(shop: Folder, store: Store) -> None:
    assert shop.bullpen("workers").out.startswith("No workers.")
    assert shop.bullpen("workers", "--json").json == []
    await _beat(store)
    (worker,) = shop.bullpen("workers", "--json").json
    assert worker["queues"]["mail"] == 5
    assert "mail 5, reports 2" in shop.bullpen("workers").out


def test_an_empty_store_says_what_to_do(folder: Folder, store: Store) -> None:
    assert "bullpen enqueue" in folder.bullpen("queues").out
    assert folder.bullpen("queues", "--json").json == []
    assert folder.bullpen("dead").out == "No failed jobs.\n"
