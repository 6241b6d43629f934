"""Records with a run, a pool of real sandboxes, and the workspaces that tests make."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.checkpoints import Workspace
from bullpen.agents.sandbox import BubblewrapDriver, Limits, PoolOptions, SandboxPool, SandboxSpec
from bullpen.agents.sandbox.registry import Registry
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from tests.records.conftest import address, clock, postgres_server
from tests.records.files.conftest import records
from tests.records.files.runs import make_run

__all__ = ["address", "clock", "postgres_server", "records"]

SPEC = SandboxSpec(limits=Limits(memory_mb=128, disk_mb=16, processes=32, files=2_000, timeout=30))

MakeWorkspace = Callable[..., Workspace]


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[SandboxPool]:
    if shutil.which("bwrap") is None:
        assert not os.environ.get("CI"), "bubblewrap is not installed"
        pytest.skip("bubblewrap is not installed")
    (tmp_path / "sandboxes").mkdir(mode=0o700)
    options = PoolOptions(warm=0, most=4)
    async with SandboxPool(BubblewrapDriver(), [SPEC], options, registry=Registry(tmp_path / "sandboxes")) as pool:
        yield pool


@pytest.fixture
async def make(records: Records, pool: SandboxPool) -> AsyncIterator[MakeWorkspace]:
    """Workspaces of the task `t1`, or of another."""
    await make_run(records)
    async with records.database.writing() as connection:
        await JournalOn(connection, records.database).open("t1")
    made: list[Workspace] = []

    def make(task_id: str = "t1", **options: Any) -> Workspace:
        made.append(Workspace(records.files, pool, task_id, SPEC, **options))
        return made[-1]

    yield make
    for workspace in made:
        await workspace.close()
