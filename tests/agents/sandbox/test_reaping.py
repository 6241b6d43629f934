"""What dead workers leave: another ends it, and nothing else."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from bullpen.agents.sandbox import (
    BubblewrapDriver,
    Registry,
)
from bullpen.agents.sandbox.processes import boot_id, is_alive, marked, start_time
from bullpen.errors import SandboxUnavailable
from tests.agents.sandbox.conftest import MakePool
from tests.worker.waiting import until

_OWNER = """
import asyncio, sys
from pathlib import Path
from bullpen.agents.sandbox import BubblewrapDriver, PoolOptions, Registry, SandboxPool
async def main():
    registry = Registry(Path(sys.argv[1]))
    pool = SandboxPool(BubblewrapDriver(), options=PoolOptions(warm=1), owner="doomed", registry=registry)
    await pool.start()
    sandbox = await pool.acquire()
    tell = lambda *_: print("up", flush=True)
    await sandbox.run(["sh", "-c", "trap '' TERM; (setsid sleep 1000 &) ; echo x; sleep 1000"], on_line=tell)
asyncio.run(main())
"""


async def test_sandboxes_of_a_killed_worker_are_reaped_by_another(pool_of: MakePool, registry: Registry) -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER, str(registry.folder)], stdout=subprocess.PIPE)
    assert owner.stdout
    with owner:
        assert await asyncio.to_thread(owner.stdout.readline) == b"up\n"
        left = registry.entries()
        assert {entry.owner for entry in left} == {"doomed"}
        owner.kill()
    pool = pool_of(warm=0)
    reaped = await pool.start()
    assert {entry.id for entry in reaped} >= {entry.id for entry in left if entry.token}
    assert registry.entries() == []

    async def alive() -> list[int]:
        tokens = [entry.token for entry in left if entry.token]
        known = [int(t["pid"]) for t in tokens if is_alive(int(t["pid"]), int(t["started"]))]
        return known + [pid for entry in reaped for pid, _ in marked(f"SANDBOX={entry.id}")]

    assert left
    await until(alive, lambda pids: not pids)


@pytest.fixture
def orphan() -> Any:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def _entry(registry: Registry, orphan: "subprocess.Popen[bytes]", **changes: Any) -> None:
    """A note about a sandbox that runs, of an owner that does not."""
    registry.open()
    token = {"pid": orphan.pid, "started": start_time(orphan.pid) or 0}
    registry.enter("left", "bubblewrap", "gone", changes.pop("token", token))
    (entry,) = registry.entries()
    changed = msgspec.structs.replace(entry, **{"owner_started": 1, **changes})
    (registry.folder / "left.json").write_bytes(msgspec.json.encode(changed))


async def test_what_outlived_its_owner_is_ended(registry: Registry, driver: BubblewrapDriver, orphan: Any) -> None:
    _entry(registry, orphan)
    assert [entry.owner for entry in await registry.reap(driver)] == ["gone"]
    assert orphan.wait(10) == -9
    assert registry.entries() == []


@pytest.mark.parametrize(
    "changes, stays",
    [
        ({"owner_started": start_time(os.getpid())}, True),  # its owner lives
        ({"driver": "docker"}, True),  # not for this driver
        ({"namespace": "pid:[1]"}, True),  # numbers of another namespace mean nothing here
        ({"boot": "earlier"}, False),  # before the machine started: the number is another's now
        ({"token": {"pid": os.getpid(), "started": 1}}, False),  # the same
        ({"token": {}}, False),  # it died before it had made one
    ],
    ids=["alive", "driver", "namespace", "boot", "number", "unmade"],
)
async def test_nothing_else_is_ended(
    registry: Registry, driver: BubblewrapDriver, orphan: Any, changes: dict[str, Any], stays: bool
) -> None:
    _entry(registry, orphan, **changes)
    await registry.reap(driver)
    assert orphan.poll() is None
    assert (registry.entries() != []) is stays
    assert boot_id()


async def test_one_that_was_being_made_is_ended(registry: Registry, driver: BubblewrapDriver) -> None:
    """Its owner died before it was known by number; it is found by its mark."""
    with subprocess.Popen(["sleep", "1000"], env={"SANDBOX": "left"}) as half_made:
        _entry(registry, half_made, token={})
        await registry.reap(driver)
        assert half_made.wait(10) == -9


async def test_a_note_that_is_cut_off_is_dropped(registry: Registry, driver: BubblewrapDriver) -> None:
    registry.open()
    (registry.folder / "half.json").write_bytes(b'{"id": "ha')
    assert await registry.reap(driver) == []
    assert list(registry.folder.glob("*.json")) == []


def test_a_folder_that_others_may_write_to_is_refused(registry: Registry) -> None:
    registry.folder.mkdir(mode=0o777)
    registry.folder.chmod(0o777)
    with pytest.raises(SandboxUnavailable, match="can be written by others"):
        registry.open()
