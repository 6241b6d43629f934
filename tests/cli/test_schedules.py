"""`bullpen schedules`."""

from bullpen import Queue, SqliteStore
from tests.cli.commands import Folder


async def test_schedules_are_listed_and_steered(folder: Folder, store: SqliteStore) -> None:
    reports = Queue(store, "reports")
    await reports.schedules.upsert("nightly", "report", {"kind": "full"}, cron="0 3 * * *", tz="Europe/Berlin")
    await Queue(store, "mail").schedules.upsert("sweep", "clean", every=90)
    assert [one["id"] for one in folder.bullpen("schedules", "--json").json] == ["sweep", "nightly"]
    (nightly,) = folder.bullpen("schedules", "--queue", "reports", "--json").json
    assert (nightly["cron"], nightly["tz"], nightly["every_ms"]) == ("0 3 * * *", "Europe/Berlin", None)
    assert (nightly["data"], nightly["overlap"], nightly["paused"]) == ({"kind": "full"}, "skip", False)
    table = folder.bullpen("schedules").out
    assert "every 1 min" in table or "every 90 s" in table
    assert "0 3 * * * Europe/Berlin" in table

    paused = folder.bullpen("schedules", "pause", "reports", "nightly", "--json").json
    assert (paused["paused"], paused["next_ms"]) == (True, None)
    assert "paused" in folder.bullpen("schedules").out
    assert folder.bullpen("schedules", "resume", "reports", "nightly").out.startswith(
        "reports/nightly goes on, next in"
    )
    ran = folder.bullpen("schedules", "run", "reports", "nightly", "--json").json
    assert await reports.job(ran["id"]).data() == {"kind": "full"}
    assert folder.bullpen("schedules", "remove", "reports", "nightly").out == "reports/nightly is removed\n"
    gone = folder.bullpen("schedules", "remove", "reports", "nightly")
    assert gone.code == 1
    assert "no schedule 'nightly' in queue 'reports'" in gone.err
    assert folder.bullpen("schedules", "--queue", "reports").out == "No schedules.\n"


def test_an_act_names_its_schedule(folder: Folder) -> None:
    assert folder.bullpen("schedules", "pause", "reports").code == 2
