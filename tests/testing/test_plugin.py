"""The pytest plugin, as a project of its own meets it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen import Bullpen, Context
from bullpen.stores.base import Store
from bullpen.testing import ManualClock, assert_queued

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "testing_project"
LIMIT_S = 60

_WITHOUT_ASYNCIO = """
import asyncio
from bullpen import Bullpen, Context
from bullpen.testing import run_until_empty

pen = Bullpen("sqlite:never-opened.db")

@pen.job
async def double(ctx: Context, n: int) -> int:
    return 2 * n

def test_plain(bullpen_use, bullpen_clock):
    async def scenario():
        await double.options(delay=60).add(n=21)
        return await run_until_empty(pen, clock=bullpen_clock)

    bullpen_use(pen)
    assert [run.result for run in asyncio.run(scenario()).runs] == [42]
"""


def run_pytest(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run pytest there, as its owner would."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BULLPEN_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"} | settings,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example project."""
    return Path(shutil.copytree(PROJECT, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__", ".*")))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_example_project_passes(project: Path) -> None:
    """With warnings as errors, and without a store of its own being touched."""
    done = run_pytest(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
    assert not (project / ".bullpen").exists()


def test_a_wrong_argument_fails_readably(project: Path) -> None:
    """The message names what was looked for and what is there, at the line of the test."""
    change(project / "shop" / "jobs.py", "add(order_id=order_id)", "add(order_id=order_id + 1)")
    done = run_pytest(project, "-k", "asks_for_its_confirmation")
    assert done.returncode == 1
    assert "AssertionError: confirm(order_id=7), tenant='acme' is not queued; queued are:" in done.stdout
    assert "mail/1 confirm(order_id=8, lang='en') prioritized, priority=5, tenant='acme'" in done.stdout
    assert "asserting.py" not in done.stdout


def test_a_failing_job_fails_readably(project: Path) -> None:
    """`check` shows the stack trace of the handler."""
    change(project / "shop" / "jobs.py", "    ctx.log(", "    raise ValueError('no such order')\n    ctx.log(")
    change(project / "shop" / "jobs.py", "attempts=3", "attempts=1")
    done = run_pytest(project, "-k", "what_is_due_now")
    assert done.returncode == 1
    assert "1 of 1 runs failed for good" in done.stdout
    assert "mail/1 confirm attempt 1 failed: ValueError: no such order" in done.stdout


def test_jobs_without_end_fail_readably(project: Path) -> None:
    change(
        project / "shop" / "jobs.py",
        '    await send(f"how',
        '    ctx.then(ask_for_review.prepare(order_id=order_id))\n    await send(f"how',
    )
    done = run_pytest(project, "-k", "server_that_is_away")
    assert done.returncode == 1
    assert "AssertionError: 10 runs and still more to do; the latest were:" in done.stdout


def test_it_works_without_pytest_asyncio(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(_WITHOUT_ASYNCIO)
    done = run_pytest(tmp_path, "-p", "no:asyncio", "-W", "error")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_it_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("def test_nothing(bullpen_store): ...")
    done = run_pytest(tmp_path, "-p", "no:bullpen")
    assert "fixture 'bullpen_store' not found" in done.stdout


def test_it_loads_nothing_that_pytest_must_see_first(tmp_path: Path) -> None:
    """The conformance kit is rewritten by pytest when a project asks for it, so it is not imported before."""
    (tmp_path / "conftest.py").write_text(
        "import pytest\npytest.register_assert_rewrite('bullpen.testing.conformance')"
    )
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\n"
        "def test_modules():\n"
        "    heavy = {'hypothesis', 'redis', 'rich', 'bullpen.testing.conformance', 'bullpen.testing.machine'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    done = run_pytest(tmp_path, "-W", "error", "-p", "bullpen.testing.plugin", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 0, done.stdout + done.stderr


async def test_an_app_gets_its_own_store_back(bullpen_store: Store, bullpen_clock: ManualClock, tmp_path: Path) -> None:
    """A swap ends with its block, also for queues that were asked for within it."""
    pen = Bullpen(f"sqlite:{tmp_path / 'own.db'}")
    own = pen.store

    @pen.job(queue="mail")
    async def welcome(ctx: Context) -> None: ...

    queue = pen.queue("mail")
    with pen.using(bullpen_store) as same:
        assert same is pen
        assert pen.store is bullpen_store
        await welcome.add()
        await assert_queued(pen, welcome)
    assert pen.store is own
    assert pen.queue("mail") is queue
    assert not (tmp_path / "own.db").exists()
    assert bullpen_store.clock is bullpen_clock
