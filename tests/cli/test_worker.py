"""`bullpen worker`: real processes that run the jobs of a module."""

import json
import re
import signal
import subprocess

import pytest

from tests.cli.commands import Folder
from tests.support.places import only_on_sqlite
from tests.telemetry.asking import get

_SHOP = """
import asyncio
import os
from bullpen import Bullpen, Context

pen = Bullpen()
not_a_pen = 1


@pen.job(queue="mail")
async def who(ctx: Context) -> dict[str, int]:
    return {"pid": os.getpid()}


@pen.job(queue="mail")
async def loop(ctx: Context) -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


@pen.job(queue="mail")
async def broken(ctx: Context) -> None:
    raise ValueError("it is broken")


@pen.job(queue="images")
async def resize(ctx: Context) -> None: ...
"""


@pytest.fixture
def app(folder: Folder) -> Folder:
    (folder.path / "shop.py").write_text(_SHOP)
    (folder.path / "wrong.py").write_text("pen = 1 / 0\n")
    return folder


def _heard(process: "subprocess.Popen[str]", text: str) -> str:
    """Its log up to the line with this text."""
    assert process.stderr is not None
    told = ""
    while text not in told:
        line = process.stderr.readline()
        assert line, told
        told += line
    return told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_runs_jobs_until_told_to_stop(app: Folder, number: signal.Signals) -> None:
    with app.started("worker", "shop:pen", "--concurrency", 3) as worker:
        assert "images (3 at once), mail (3 at once)" in _heard(worker, "serves")
        answer = app.bullpen("enqueue", "mail", "who", "--wait", "--within", 30, "--json")
        assert answer.json["result"] == {"pid": worker.pid}
        failed = app.bullpen("enqueue", "mail", "broken", "--wait", "--within", 30)
        assert failed.code == 1
        assert failed.err.endswith("it is broken [job-failed]\n")
        worker.send_signal(number)
        assert worker.wait(30) == 0


@only_on_sqlite  # no job is run
def test_only_the_queues_asked_for(app: Folder) -> None:
    with app.started("worker", "shop:pen", "--queue", "images") as worker:
        assert "serves images (5 at once)\n" in _heard(worker, "serves")
        worker.terminate()
        assert worker.wait(30) == 0


@only_on_sqlite  # no job is run
def test_shared_slots_and_weights(app: Folder) -> None:
    with app.started("worker", "shop:pen", "--shared", 4, "--weight", "mail=3", "--weight", "images=1") as worker:
        assert "images (4 at once), mail (4 at once)" in _heard(worker, "serves")
        worker.terminate()
        assert worker.wait(30) == 0


@only_on_sqlite  # the loop is the same on any store
@pytest.mark.parametrize("processes", [1, 2])
def test_handlers_run_on_the_quickest_loop(app: Folder, processes: int) -> None:
    """One process as well as those of a supervisor."""
    with app.started("worker", "shop:pen", "--processes", processes) as worker:
        _heard(worker, "serves")
        assert app.bullpen("enqueue", "mail", "loop", "--wait", "--within", 30, "--json").json["result"] == "uvloop"
        worker.terminate()
        assert worker.wait(30) == 0


def test_several_processes(app: Folder) -> None:
    with app.started("worker", "shop:pen", "--processes", 2, "--queue", "mail") as worker:
        told = _heard(worker, "serves")
        told += _heard(worker, "serves")
        assert len(set(re.findall(r"worker (\S+) serves mail \(5 at once\)", told))) == 2
        pid = app.bullpen("enqueue", "mail", "who", "--wait", "--within", 30, "--json").json["result"]["pid"]
        assert pid != worker.pid
        worker.terminate()
        assert worker.wait(30) == 0


_TEAM = """
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bullpen import Bullpen, Context
from bullpen.agents.agents import Agents

pen = Bullpen()


@asynccontextmanager
async def equipment(agents: Agents) -> AsyncIterator[None]:
    yield
    Path(f"closed-{os.getpid()}").touch()


agents = Agents(pen, "sqlite:records.db", providers=[], equipment=equipment)


@pen.job(queue="mail")
async def equip(ctx: Context) -> dict[str, int]:
    await agents.workshop()
    return {"pid": os.getpid()}
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_the_application_is_closed_before_a_process_ends(folder: Folder, processes: int) -> None:
    (folder.path / "team.py").write_text(_TEAM)
    with folder.started("worker", "team:pen", "--queue", "mail", "--processes", processes) as worker:
        _heard(worker, "serves")
        answer = folder.bullpen("enqueue", "mail", "equip", "--wait", "--within", 60, "--json")
        worker.terminate()
        assert worker.wait(60) == 0
    assert (folder.path / f"closed-{answer.json['result']['pid']}").exists()


@only_on_sqlite  # nothing of it is kept in a store
def test_an_application_that_does_not_close_is_told_of_and_keeps_no_process(folder: Folder) -> None:
    broken = _TEAM.replace("Path(", "raise OSError('it is stuck')\n    Path(")
    (folder.path / "team.py").write_text(broken)
    with folder.started("worker", "team:pen", "--queue", "mail") as worker:
        _heard(worker, "serves")
        folder.bullpen("enqueue", "mail", "equip", "--wait", "--within", 60)
        worker.terminate()
        assert "it is stuck" in _heard(worker, "OSError")
        assert worker.wait(60) == 0


@only_on_sqlite  # refused before a store is asked
@pytest.mark.parametrize(
    "words, reason",
    [
        (["shop"], "MODULE:PEN"),
        (["nowhere:pen"], "No module named 'nowhere'"),
        (["shop:missing"], "missing"),
        (["shop:not_a_pen"], "not a Bullpen"),
        (["wrong:pen"], "wrong.py:1"),
        (["shop:pen", "--queue", "other"], "no job type is declared for queue 'other'"),
        (["nowhere:pen", "--processes", "2"], "No module named 'nowhere'"),
        (["shop:pen", "--concurrency", "0"], "whole number"),
        (["shop:pen", "--weight", "mail"], "'mail' is not a weight such as mail=3"),
        (["shop:pen", "--weight", "mail=2"], "weights: are for shared slots"),
        (["shop:pen", "--health-port", "99999"], "BULLPEN_HEALTH_PORT: a whole number from 0 to 65535"),
        (["shop:pen", "--log-format", "xml"], "invalid choice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_run_is_told_in_a_line(app: Folder, words: list[str], reason: str) -> None:
    answer = app.bullpen("worker", *words)
    assert answer.code == 2
    (line,) = answer.err.splitlines()
    assert reason in line


def _port(told: str) -> int:
    """That of the endpoints, from the worker's log."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)", told)
    assert found is not None, told
    return int(found[1])


@only_on_sqlite  # what is told is the same
def test_a_worker_serves_its_health_and_metrics(app: Folder) -> None:
    with app.started("worker", "shop:pen", "--health-port", 0) as worker:
        url = f"http://127.0.0.1:{_port(_heard(worker, 'health at'))}"
        while get(f"{url}/health/ready").status != 200:
            pass
        app.bullpen("enqueue", "mail", "who", "--wait", "--within", 30)
        while 'outcome="completed"} 1' not in (text := get(f"{url}/metrics").text):
            pass
        assert 'bullpen_jobs_total{queue="mail",name="who",outcome="completed"} 1' in text
        assert get(f"{url}/health/live").status == 200
        worker.terminate()
        assert worker.wait(30) == 0


@only_on_sqlite  # what is told is the same
def test_several_processes_have_one_endpoint(app: Folder) -> None:
    """Ready while one of them is; their metrics stand side by side, those of the store once."""
    with app.started("worker", "shop:pen", "--processes", 2, "--health-port", 0) as worker:
        url = f"http://127.0.0.1:{_port(_heard(worker, 'health at'))}"
        while get(f"{url}/health/ready").status != 200:
            pass
        app.bullpen("enqueue", "mail", "who", "--wait", "--within", 30)
        while 'bullpen_worker_ready{process="2"} 1' not in (text := get(f"{url}/metrics").text):
            pass
        assert 'bullpen_worker_ready{process="1"} 1' in text
        assert text.splitlines().count("bullpen_store_up 1") == 1
        assert text.count("# TYPE bullpen_worker_ready gauge") == 1
        assert get(f"{url}/health").json["checks"]["workers"]["details"]["count"] == 2
        worker.terminate()
        assert worker.wait(30) == 0


@only_on_sqlite  # what is told is the same
def test_a_log_of_json(app: Folder) -> None:
    with app.started("worker", "shop:pen", "--log-format", "json") as worker:
        told = _heard(worker, "serves")
        app.bullpen("enqueue", "mail", "broken", '{"secret": "hunter2"}', "--id", "b-1", "--wait", "--within", 30)
        told += _heard(worker, "failed for good")
        lines = [json.loads(line) for line in told.splitlines()]
        assert lines[-1]["logger"] == "bullpen.alerts"
        assert (lines[-1]["queue"], lines[-1]["job_id"]) == ("mail", "b-1")
        assert "hunter2" not in told
        worker.terminate()
        assert worker.wait(30) == 0
