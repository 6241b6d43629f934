"""Docker and E2B, against local servers that speak their protocols: the same sandbox behind both."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bullpen.agents.sandbox import Ending, Level, Limits, PoolOptions, Registry, Sandbox, SandboxPool, SandboxSpec
from bullpen.agents.sandbox.docker import DockerDriver
from bullpen.agents.sandbox.e2b import E2BDriver
from bullpen.errors import BadOption, SandboxUnavailable
from tests.agents.sandbox.conftest import SMALL
from tests.agents.sandbox.serving import DockerServer, E2BServer, serving_docker, serving_e2b
from tests.worker.waiting import until

SPEC = SandboxSpec(limits=SMALL)


@pytest.fixture
async def docker(tmp_path: Path) -> AsyncIterator[tuple[DockerServer, DockerDriver]]:
    socket = str(tmp_path / "docker.sock")
    async with serving_docker(socket) as server:
        yield server, DockerDriver(socket=socket)


@pytest.fixture
async def e2b() -> AsyncIterator[tuple[E2BServer, E2BDriver]]:
    async with serving_e2b() as (server, address):
        driver = E2BDriver(key="key", api=address, envd=address + "/{id}")
        yield server, driver
        await driver.close()


async def _behaves(sandbox: Sandbox) -> None:
    """What every sandbox does."""
    lines: list[bytes] = []
    await sandbox.write("in/a.txt", b"x" * 200_000)
    line = "wc -c < in/a.txt; echo bad >&2; exit 3"
    outcome = await sandbox.run(["sh", "-c", line], on_line=lambda _, text: lines.append(text))
    assert (outcome.stdout, outcome.stderr, outcome.code) == (b"200000\n", b"bad\n", 3)
    assert sorted(lines) == [b"200000", b"bad"]
    assert (await sandbox.read("in/a.txt")).data == b"x" * 200_000
    outcome = await sandbox.run(["sh", "-c", "trap '' TERM; (setsid sleep 1000 &); sleep 1000"], timeout=0.3)
    assert outcome.ended is Ending.TIMEOUT
    running = asyncio.create_task(sandbox.run(["sh", "-c", "echo up; sleep 1000"], on_line=lambda *_: up.set()))
    up = asyncio.Event()
    await up.wait()
    running.cancel()
    await asyncio.wait([running])
    assert await sandbox.ping()
    left = await sandbox.run(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"])
    assert b"sleep 1000" not in left.stdout


async def test_a_container(docker: tuple[DockerServer, DockerDriver]) -> None:
    server, driver = docker
    sandbox = await driver.create(SPEC, id="one")
    assert sandbox.level is Level.CONTAINER
    await _behaves(sandbox)
    host = server.containers["bullpen-one"]["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["PidsLimit"] == SMALL.processes + 1
    assert host["CapDrop"] == ["ALL"]
    assert host["ReadonlyRootfs"]
    assert host["NanoCpus"] == 1_000_000_000
    assert host["Tmpfs"]["/workspace"].startswith("rw,nosuid,nodev,size=16777216,")
    await sandbox.close()
    assert server.containers == {}
    await driver.reap({"id": "one"})  # gone already


async def test_a_container_with_a_network_inputs_and_gvisor(tmp_path: Path) -> None:
    socket, data = str(tmp_path / "docker.sock"), tmp_path / "data.csv"
    data.write_text("x")
    async with serving_docker(socket) as server:
        driver = DockerDriver(socket=socket, runtime="runsc")
        spec = SandboxSpec(image="mine", limits=Limits(network=True), inputs={"data.csv": data})
        sandbox = await driver.create(spec, id="two")
        described = server.containers["bullpen-two"]
        await sandbox.close()
    assert (described["Image"], described["HostConfig"]["Runtime"]) == ("mine", "runsc")
    assert described["HostConfig"]["NetworkMode"] == "bridge"
    mount = {"Type": "bind", "Source": str(data), "Target": "/inputs/data.csv", "ReadOnly": True}
    assert described["HostConfig"]["Mounts"] == [mount]


async def test_what_docker_refuses_is_told(docker: tuple[DockerServer, DockerDriver], tmp_path: Path) -> None:
    _, driver = docker
    with pytest.raises(SandboxUnavailable, match="404 No such image: missing"):
        await driver.create(SandboxSpec(image="missing"), id="x")
    with pytest.raises(BadOption, match="packages"):
        await driver.create(SandboxSpec(packages=("pandas",)), id="x")
    with pytest.raises(SandboxUnavailable, match="does not answer"):
        await DockerDriver(socket=str(tmp_path / "nothing.sock")).create(SPEC, id="x")


def test_where_docker_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://1.2.3.4:2375")
    with pytest.raises(BadOption, match="DOCKER_HOST"):
        DockerDriver()


async def test_a_container_of_a_dead_worker_is_reaped(
    docker: tuple[DockerServer, DockerDriver], tmp_path: Path
) -> None:
    """Also one that its worker was about to make: it is found by its name."""
    server, driver = docker
    registry = Registry(tmp_path / "sandboxes")
    registry.open()
    left = await driver.create(SPEC, id="left")
    registry.enter("left", "docker", "gone", {})
    dead = msgspec.structs.replace(registry.entries()[0], owner_started=1)
    (registry.folder / "left.json").write_bytes(msgspec.json.encode(dead))
    async with SandboxPool(driver, [SPEC], PoolOptions(warm=0), registry=registry):
        assert server.containers == {}
    await until(left.ping, lambda alive: not alive)
    await left.close()


async def test_a_machine_at_e2b(e2b: tuple[E2BServer, E2BDriver]) -> None:
    server, driver = e2b
    sandbox = await driver.create(SPEC, id="one")
    assert sandbox.level is Level.MICROVM
    await _behaves(sandbox)
    order: dict[str, Any] = server.asked[0][2]
    assert (order["templateID"], order["allow_internet_access"], order["metadata"]) == (
        "base",
        False,
        {"bullpen": "one"},
    )
    assert driver.token(sandbox) == {"remote": "vm1"}
    assert any(headers.get("x-access-token") == "inner" for headers in server.headers)
    await sandbox.close()
    assert server.asked[-1] == ("DELETE", "/sandboxes/vm1", None)
    await driver.reap({"remote": "vm1"})  # gone already


async def _ended_by_pool(server: DockerServer | E2BServer, driver: DockerDriver | E2BDriver, folder: Path) -> None:
    server.refuses_to_end = 1
    registry = Registry(folder)
    options = PoolOptions(warm=0, check_every=0.05)
    async with SandboxPool(driver, [SPEC], options, registry=registry) as pool:
        async with pool.lend():
            pass
        assert server.processes, "it could not be ended"
        assert len(registry.entries()) == 1

        async def look() -> bool:
            return not server.processes and not registry.entries()

        await until(look, bool)
    assert sum(verb == "DELETE" for verb, *_ in server.asked) == 2


async def test_a_container_that_could_not_be_removed_is_removed_later(
    docker: tuple[DockerServer, DockerDriver], tmp_path: Path
) -> None:
    """By the worker that made it, while it lives: no other one does it."""
    await _ended_by_pool(*docker, tmp_path / "sandboxes")


async def test_a_machine_that_could_not_be_ended_is_ended_later(
    e2b: tuple[E2BServer, E2BDriver], tmp_path: Path
) -> None:
    await _ended_by_pool(*e2b, tmp_path / "sandboxes")


async def test_what_could_not_be_ended_before_the_pool_closes_is_tried_once_more(
    docker: tuple[DockerServer, DockerDriver], tmp_path: Path
) -> None:
    server, driver = docker
    registry = Registry(tmp_path / "sandboxes")
    async with SandboxPool(driver, [SPEC], PoolOptions(warm=0), registry=registry) as pool:
        await pool.acquire()
        server.refuses_to_end = 1
    assert server.containers == {}
    assert registry.entries() == []


async def test_a_machine_at_e2b_lives_as_long_as_it_is_had(
    e2b: tuple[E2BServer, E2BDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service ends it an hour after it was last told not to; also if it could not be told once."""
    server, driver = e2b
    monkeypatch.setattr("bullpen.agents.sandbox.e2b._EXTENDED_EVERY_S", 0.01)
    sandbox = await driver.create(SPEC, id="one")
    extended = ("POST", "/sandboxes/vm1/timeout", {"timeout": 3600})

    async def look() -> int:
        return server.asked.count(extended)

    await until(look, lambda times: times > 2)
    await sandbox.close()
    times = await look()
    assert server.asked[-1] == ("DELETE", "/sandboxes/vm1", None)
    assert await look() == times


async def test_what_e2b_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    with pytest.raises(BadOption, match="E2B_API_KEY"):
        E2BDriver()
    async with serving_e2b() as (_, address):
        driver = E2BDriver(key="wrong", api=address)
        with pytest.raises(SandboxUnavailable, match="401"):
            await driver.create(SPEC, id="x")
        for option in ({"packages": ("x",)}, {"inputs": {"x": Path("/x")}}):
            with pytest.raises(BadOption, match=next(iter(option))):
                await driver.create(SandboxSpec(**option), id="x")
        await driver.close()
    driver = E2BDriver(key="key", api=address)
    with pytest.raises(SandboxUnavailable, match="no answer"):
        await driver.create(SPEC, id="x")
    await driver.close()
