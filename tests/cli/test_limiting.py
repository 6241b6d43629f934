"""The verbs for limits and groups."""

from tests.cli.commands import Folder
from tests.support.places import only_on_sqlite


def test_limits_are_set_shown_and_lifted(folder: Folder) -> None:
    folder.bullpen("enqueue", "mail", "x")
    assert folder.bullpen("limits", "mail").out == "mail has no limits\n"
    set_now = folder.bullpen("limits", "mail", "--concurrency", 3, "--rate", "100/60", "--json").json
    assert set_now == {
        "queue": "mail", "concurrency": 3, "rate_max": 100, "rate_ms": 60_000, "closed_until_ms": None,
    }  # fmt: skip
    assert folder.bullpen("limits", "mail").out.startswith("mail: at once 3, starts 100 in ")
    assert folder.bullpen("limits", "mail", "--none").out == "mail has no limits\n"


@only_on_sqlite  # no store is asked
def test_limits_refuse_what_is_no_rate(folder: Folder) -> None:
    folder.bullpen("enqueue", "mail", "x")
    for rate in ("fast", "0/60", "5/0"):
        assert folder.bullpen("limits", "mail", "--rate", rate).code == 2


def test_groups_are_listed_limited_and_paused(folder: Folder) -> None:
    for tenant in ("acme", "acme", "globex"):
        folder.bullpen("enqueue", "mail", "x", "--tenant", tenant, "--group", "{tenant}")
    folder.bullpen("groups", "mail", "set", "--concurrency", 5)
    folder.bullpen("groups", "mail", "set", "acme", "--weight", 3, "--max-size", 10)
    told = folder.bullpen("groups", "mail", "pause", "acme", "--json").json
    assert told["default"]["concurrency"] == 5
    acme, globex = told["groups"]
    assert (acme["name"], acme["waiting"], acme["paused"], acme["limits"]["weight"]) == ("acme", 2, True, 3)
    assert (globex["name"], globex["waiting"], globex["paused"]) == ("globex", 1, False)
    table = folder.bullpen("groups", "mail", "resume", "acme").out
    assert "acme" in table
    assert "paused" not in table
    plain = folder.bullpen("groups", "mail", "unset", "acme", "--json").json["groups"][0]
    assert plain["limits"]["weight"] is None


def test_groups_of_a_queue_without_any(folder: Folder) -> None:
    folder.bullpen("enqueue", "mail", "x")
    assert "no groups" in folder.bullpen("groups", "mail").out
    assert folder.bullpen("groups", "mail", "pause").code == 2, "which one is not said"
    assert folder.bullpen("groups", "nobody").code == 1
