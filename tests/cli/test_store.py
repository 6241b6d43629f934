"""`bullpen store copy`: what it says, to whom, and how it ends. `tests/moving` has what it does."""

import json
import signal

from bullpen import Queue, SqliteStore, Store
from tests.cli.commands import LIMIT_S, Folder
from tests.support.places import Place, only_on_sqlite

_ALL = {"mail": 5, "reports": 1}


def _copied(folder: Folder) -> dict[str, int]:
    """How many jobs each queue of the copy has."""
    found = folder.bullpen("queues", "--json", "--store", "new.db").json
    return {
        one["queue"]: sum(one[state] for state in ("prioritized", "delayed", "completed", "failed")) for one in found
    }


def test_a_copy_says_what_moved(shop: Folder, place: Place) -> None:
    answer = shop.bullpen("store", "copy", place.address, "new.db")
    assert (answer.code, answer.lines) == (0, ["mail: 5 jobs moved", "reports: 1 job moved"])
    assert _copied(shop) == _ALL
    again = shop.bullpen("store", "copy", place.address, "new.db")
    assert (again.code, again.lines) == (0, ["mail: 0 jobs moved", "reports: 0 jobs moved"])


def test_a_copy_answers_in_json(shop: Folder, place: Place) -> None:
    answer = shop.bullpen("store", "copy", place.address, "new.db", "--queue", "mail", "--json")
    assert answer.code == 0
    assert answer.json == [{"queue": "mail", "moved": 5, "active": 0}]
    assert _copied(shop) == {"mail": 5}


def test_a_copy_shows_a_bar_at_a_terminal(shop: Folder, place: Place) -> None:
    answer = shop.seen("store", "copy", place.address, "new.db")
    assert answer.code == 0
    assert "moving" in answer.out
    assert answer.lines[-1] == "reports: 1 job moved"


def test_nothing_to_copy_is_said(folder: Folder, store: Store, place: Place) -> None:
    assert folder.bullpen("store", "copy", place.address, "new.db").lines == ["No queues to move."]


def test_following_goes_on_until_it_is_told_to_end(shop: Folder, place: Place) -> None:
    """What has caught up is told, since that is what an operator waits for; the end is a good one."""
    with shop.started("store", "copy", place.address, "new.db", "--follow", "--json") as copier:
        assert copier.stdout is not None
        told = [json.loads(copier.stdout.readline()) for _ in _ALL]
        assert {one["queue"]: one["moved"] for one in told} == _ALL
        copier.send_signal(signal.SIGTERM)
        assert copier.wait(LIMIT_S) == 0
    assert _copied(shop) == _ALL


async def test_a_target_with_jobs_is_refused(shop: Folder, place: Place) -> None:
    """In one line with its code, and nothing was changed."""
    other = SqliteStore(shop.path / "new.db")
    await other.open()
    await Queue(other, "mail").add("own")
    await other.close()
    answer = shop.bullpen("store", "copy", place.address, "new.db")
    assert answer.code == 1
    assert answer.err.endswith("[move-refused]\n")
    assert len(answer.err.splitlines()) == 1
    assert not any(one["paused"] for one in shop.bullpen("queues", "--json").json)


@only_on_sqlite  # hardly any of them reaches a store
def test_wrong_words_are_told(shop: Folder, place: Place) -> None:
    for words, code, error in (
        (("store",), 2, "usage"),
        (("store", "copy", place.address), 2, "usage"),
        (("store", "copy", "odd:thing", "new.db"), 2, "bad-option"),
        (("store", "copy", place.address, place.address), 2, "bad-option"),
        (("store", "copy", place.address, "new.db", "--queue", "not a name"), 2, "bad-name"),
        (("store", "copy", place.address, "new.db", "--queue", "none"), 1, "queue-missing"),
        (("store", "copy", "missing.db", "new.db"), 3, "store-unavailable"),
    ):
        answer = shop.bullpen(*words)
        assert answer.code == code, answer.err
        assert answer.err.endswith(f"[{error}]\n"), answer.err
    assert not (shop.path / "missing.db").exists()
