"""Sandboxes that are closed at the end, and a host that must be as well as before."""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.sandbox import BubblewrapDriver, Limits, PoolOptions, Registry, Sandbox, SandboxPool, SandboxSpec
from tests.agents.sandbox.trying import shell

SMALL = Limits(memory_mb=128, disk_mb=16, processes=32, files=2_000, timeout=30, output_bytes=10_000, cpus=1)

MakeSandbox = Callable[..., Awaitable[Sandbox]]
MakePool = Callable[..., SandboxPool]


@pytest.fixture(autouse=True)
def needs_bubblewrap() -> None:
    if shutil.which("bwrap") is None:
        assert not os.environ.get("CI"), "bubblewrap is not installed"
        pytest.skip("bubblewrap is not installed")


@pytest.fixture
def driver() -> BubblewrapDriver:
    return BubblewrapDriver()


@pytest.fixture
async def make(driver: BubblewrapDriver) -> AsyncIterator[MakeSandbox]:
    made: list[Sandbox] = []

    async def make(**options: Any) -> Sandbox:
        spec = SandboxSpec(**{"limits": SMALL, **options})
        made.append(await driver.create(spec, id=f"test-{len(made)}"))
        return made[-1]

    yield make
    for sandbox in made:
        await sandbox.close()


@pytest.fixture
async def sandbox(make: MakeSandbox) -> Sandbox:
    return await make()


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "sandboxes")


@pytest.fixture
async def pool_of(driver: BubblewrapDriver, registry: Registry) -> AsyncIterator[MakePool]:
    made: list[SandboxPool] = []

    def make(**options: Any) -> SandboxPool:
        specs = options.pop("specs", (SandboxSpec(limits=SMALL),))
        made.append(SandboxPool(driver, specs, PoolOptions(**options), owner="worker-1", registry=registry))
        return made[-1]

    yield make
    for pool in made:
        await pool.close()
    assert registry.entries() == [] or not made, "a closed pool leaves nothing"


@pytest.fixture
async def all_is_well_afterwards(sandbox: Sandbox) -> AsyncIterator[None]:
    """The sandbox serves on, and nothing of what ran in it still runs."""
    yield
    assert await sandbox.ping()
    outcome = await shell(sandbox, "ls /proc | grep -c '^[0-9]'")
    # The warden, the shell, and its two programs.
    assert int(outcome.stdout) <= 4
