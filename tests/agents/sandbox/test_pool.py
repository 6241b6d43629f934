"""The pool: warm sandboxes, lent once, limited and healthy."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from bullpen.agents.sandbox import (
    BubblewrapDriver,
    Level,
    Limits,
    PoolOptions,
    PoolStats,
    Registry,
    SandboxPool,
    SandboxSpec,
    driver_from,
)
from bullpen.agents.sandbox.processes import is_alive
from bullpen.errors import BadOption, IsolationTooWeak, SandboxError, SandboxTimeout, SandboxUnavailable
from tests.agents.sandbox.conftest import SMALL, MakePool
from tests.worker.waiting import until

OTHER = SandboxSpec(limits=Limits(memory_mb=64, disk_mb=8))


async def _stats(pool: SandboxPool, enough: Callable[[PoolStats], bool]) -> PoolStats:
    async def look() -> PoolStats:
        return pool.stats()

    return await until(look, enough)


async def test_a_warm_one_is_lent_and_replaced(pool_of: MakePool) -> None:
    pool = pool_of(warm=2, most=4)
    await pool.start()
    await _stats(pool, lambda stats: stats.available == 2)
    ready = {one.id for one in pool.list()}
    sandbox = await pool.acquire(tenant="acme")
    assert sandbox.id in ready
    assert pool.stats().from_warm == 1
    assert [(one.id, one.tenant) for one in pool.list() if one.state == "in-use"] == [(sandbox.id, "acme")]
    stats = await _stats(pool, lambda stats: stats.available == 2)
    assert (stats.size, stats.in_use) == (3, 1)


async def test_none_is_lent_twice(pool_of: MakePool) -> None:
    """What one tenant left behind is seen by no other, whatever the order."""
    pool = pool_of(warm=1, most=2)
    await pool.start()
    seen = set()
    for tenant in ("acme", "rival", "acme"):
        async with pool.lend(tenant=tenant) as sandbox:
            assert await sandbox.list() == []
            await sandbox.write("secret", tenant.encode())
            assert sandbox.id not in seen
            seen.add(sandbox.id)


async def test_all_in_use(pool_of: MakePool) -> None:
    """Who waits too long is told with the code of the source's table; who waits long enough gets the next."""
    pool = pool_of(warm=0, most=1)
    await pool.start()
    first = await pool.acquire()
    with pytest.raises(SandboxTimeout, match=r"no sandbox in 0.05 s: 1 of 1 are in use") as error:
        await pool.acquire(timeout=0.05)
    assert (error.value.agent_code, error.value.retryable, SandboxError.agent_code) == ("E004", True, "E005")
    waiting = asyncio.create_task(pool.acquire())
    await pool.release(first)
    await pool.release(first)
    second = await waiting
    assert second.id != first.id
    assert pool.stats().timeouts == 1


async def test_another_kind_makes_room_for_itself(pool_of: MakePool) -> None:
    pool = pool_of(warm=2, most=2)
    await pool.start()
    await _stats(pool, lambda stats: stats.available == 2)
    sandbox = await pool.acquire(OTHER)
    assert sandbox.spec == OTHER
    assert pool.stats().size <= 2


async def test_several_kinds_are_kept_warm(pool_of: MakePool) -> None:
    pool = pool_of(specs=(SandboxSpec(limits=SMALL), OTHER), warm=1, most=4)
    await pool.start()
    await _stats(pool, lambda stats: stats.available == 2)
    assert {one.spec.limits.memory_mb for one in pool.list()} == {SMALL.memory_mb, 64}
    assert (await pool.acquire(SandboxSpec(limits=Limits(memory_mb=64, disk_mb=8)))).spec == OTHER
    assert pool.stats().from_warm == 1


async def test_a_dead_one_is_not_lent(pool_of: MakePool, registry: Registry) -> None:
    pool = pool_of(warm=1, most=2)
    await pool.start()
    await _stats(pool, lambda stats: stats.available == 1)
    (entry,) = registry.entries()
    os.kill(int(entry.token["pid"]), 9)
    sandbox = await pool.acquire()
    assert sandbox.id != entry.id
    assert (await sandbox.run(["true"])).ok


async def test_a_dead_one_is_replaced_unasked(pool_of: MakePool, registry: Registry) -> None:
    pool = pool_of(warm=1, most=2, check_every=0.05)
    await pool.start()
    await _stats(pool, lambda stats: stats.available == 1)
    (entry,) = registry.entries()
    os.kill(int(entry.token["pid"]), 9)

    async def look() -> set[str]:
        return {one.id for one in pool.list()}

    await until(look, lambda ids: len(ids) == 1 and entry.id not in ids)


async def test_a_restart_replaces_the_unused(pool_of: MakePool) -> None:
    pool = pool_of(warm=1, most=3)
    await pool.start()
    lent = await pool.acquire()
    await _stats(pool, lambda stats: stats.available == 1)
    before = {one.id for one in pool.list() if one.state == "warm"}
    await pool.restart()
    await _stats(pool, lambda stats: stats.available == 1)
    after = {one.id for one in pool.list() if one.state == "warm"}
    assert not before & after
    assert (await lent.run(["true"])).ok


async def test_many_at_once(pool_of: MakePool) -> None:
    """Twenty who ask for one of three: each gets one, alone, and none is left."""
    pool = pool_of(warm=1, most=3)
    await pool.start()
    most = 0

    async def one(number: int) -> bytes:
        nonlocal most
        async with pool.lend() as sandbox:
            most = max(most, pool.stats().in_use)
            return (await sandbox.run(["echo", str(number)])).stdout

    assert await asyncio.gather(*map(one, range(20))) == [f"{n}\n".encode() for n in range(20)]
    assert most <= 3
    assert pool.stats().in_use == 0


async def test_a_caller_who_gives_up_leaves_nothing(pool_of: MakePool) -> None:
    pool = pool_of(warm=0, most=1)
    await pool.start()
    for _ in range(3):
        asking = asyncio.create_task(pool.acquire())
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
    async with pool.lend() as sandbox:
        assert (await sandbox.run(["true"])).ok


async def test_a_cancelled_run_is_over_and_its_sandbox_gone(pool_of: MakePool, registry: Registry) -> None:
    """In a blocked process that ignores signals; within two seconds, which are a limit and not a measure."""
    pool = pool_of(warm=0, most=1)
    await pool.start()
    started = asyncio.Event()
    tokens: list[dict[str, str | int]] = []

    async def work() -> None:
        async with pool.lend() as sandbox:
            tokens.append(pool.driver.token(sandbox))
            line = "trap '' TERM INT; (setsid sleep 1000 &); echo up; while true; do sleep 1000; done"
            await sandbox.run(["sh", "-c", line], on_line=lambda *_: started.set())

    running = asyncio.create_task(work())
    await started.wait()
    async with asyncio.timeout(2):
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert registry.entries() == []
    assert not is_alive(int(tokens[0]["pid"]), int(tokens[0]["started"]))


async def test_walls_that_are_too_low(pool_of: MakePool) -> None:
    pool = pool_of(warm=0)
    await pool.start()
    with pytest.raises(IsolationTooWeak):
        await pool.acquire(minimum=Level.MICROVM)
    async with pool.lend(minimum=Level.NAMESPACE) as sandbox:
        assert sandbox.level is Level.NAMESPACE


async def test_a_pool_that_is_not_open(pool_of: MakePool) -> None:
    pool = pool_of(warm=1)
    with pytest.raises(SandboxUnavailable, match="not open"):
        await pool.acquire()
    await pool.start()
    await pool.close()
    with pytest.raises(SandboxUnavailable, match="not open"):
        await pool.acquire()


async def test_no_sandbox_to_be_had(pool_of: MakePool, driver: BubblewrapDriver) -> None:
    """The pool says so to who asks, and gets well once there is one."""
    program, driver._program = driver._program, None
    pool = pool_of(warm=1)
    await pool.start()
    with pytest.raises(SandboxUnavailable, match="not installed"):
        await pool.acquire()
    driver._program = program
    async with pool.lend() as sandbox:
        assert await sandbox.ping()


@pytest.mark.parametrize(
    "option, value", [("warm", -1), ("warm", 11), ("most", 0), ("acquire_timeout", 0), ("check_every", "x")]
)
def test_options_that_cannot_be(option: str, value: Any) -> None:
    with pytest.raises(BadOption, match=rf"^{option}: "):
        PoolOptions(**{option: value})


def test_drivers_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BULLPEN_SANDBOX", raising=False)
    assert driver_from().name == "bubblewrap"
    with pytest.raises(BadOption, match="use e2b"):
        driver_from("firecracker")
    monkeypatch.setenv("BULLPEN_SANDBOX", "chroot")
    with pytest.raises(BadOption, match="one of bubblewrap, docker, e2b, not 'chroot'"):
        driver_from()
