"""Commands and files of a sandbox."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.sandbox import BubblewrapDriver, Ending, Level, Limits, Sandbox, SandboxSpec, require
from bullpen.agents.sandbox.processes import is_alive
from bullpen.errors import BadOption, IsolationTooWeak, SandboxBroken, SandboxRefused, SandboxUnavailable
from tests.agents.sandbox.conftest import SMALL, MakeSandbox
from tests.worker.waiting import until


async def test_a_command_with_all_its_parts(sandbox: Sandbox) -> None:
    await sandbox.write("deep/in/here.txt", b"found")
    line = 'read x; echo "$x $WHO $(cat here.txt)"; echo bad >&2; exit 3'
    outcome = await sandbox.run(["sh", "-c", line], stdin=b"hello\n", env={"WHO": "world"}, cwd="deep/in")
    assert (outcome.stdout, outcome.stderr) == (b"hello world found\n", b"bad\n")
    assert (outcome.ended, outcome.code, outcome.ok) == (Ending.EXIT, 3, False)


async def test_lines_come_while_it_runs(sandbox: Sandbox) -> None:
    """The first line is told before the command is over: it waits for an answer to it."""
    lines: list[tuple[str, bytes]] = []
    first = asyncio.Event()

    def on_line(stream: str, line: bytes) -> None:
        lines.append((stream, line))
        first.set()

    line = "echo one; echo two >&2; while true; do sleep 0.05; done"
    running = asyncio.create_task(sandbox.run(["sh", "-c", line], on_line=on_line))
    await first.wait()
    running.cancel()
    await asyncio.wait([running])
    assert ("stdout", b"one") in lines
    lines.clear()
    await sandbox.run(["printf", "a\\nb\\n\\nno end"], on_line=on_line)
    assert lines == [("stdout", b"a"), ("stdout", b"b"), ("stdout", b""), ("stdout", b"no end")]


async def test_much_goes_in_and_out(make: MakeSandbox) -> None:
    """More than any pipe holds, both ways at once."""
    sandbox = await make(limits=Limits(memory_mb=128, output_bytes=5_000_000, disk_mb=16))
    data = bytes(range(256)) * 12_000
    assert (await sandbox.run(["cat"], stdin=data)).stdout == data
    assert (await sandbox.run(["true"], stdin=data)).ok
    await sandbox.write("big", data)
    assert (await sandbox.read("big")).data == data
    assert await sandbox.read("big", limit=1000) == (data[:1000], True)


async def test_a_program_that_is_not_there(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(["no-such-program"])
    assert (outcome.code, outcome.stderr) == (127, b"no-such-program: No such file or directory\n")


async def test_one_thing_at_a_time(sandbox: Sandbox) -> None:
    """What is asked together is done one after the other, and each gets its own answer."""
    outcomes = await asyncio.gather(*(sandbox.run(["echo", str(n)]) for n in range(10)))
    assert [outcome.stdout for outcome in outcomes] == [f"{n}\n".encode() for n in range(10)]


async def test_a_cancelled_call_ends_the_command_and_keeps_the_files(sandbox: Sandbox) -> None:
    """Within two seconds, although it ignores SIGTERM and forked; asked for with a limit, not measured."""
    started = asyncio.Event()
    line = "trap '' TERM INT HUP; (trap '' TERM; sleep 1000) & echo kept > file; echo up; while true; do sleep 1; done"
    running = asyncio.create_task(sandbox.run(["sh", "-c", line], on_line=lambda *_: started.set()))
    await started.wait()
    async with asyncio.timeout(2):
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert (await sandbox.read("file")).data == b"kept\n"


async def test_a_killed_sandbox(sandbox: Sandbox, driver: BubblewrapDriver) -> None:
    started = asyncio.Event()
    token = driver.token(sandbox)
    running = asyncio.create_task(sandbox.run(["sh", "-c", "echo up; sleep 1000"], on_line=lambda *_: started.set()))
    await started.wait()
    await sandbox.kill()
    outcome = await running
    assert (outcome.ended, outcome.code, outcome.stdout) == (Ending.KILLED, None, b"up\n")
    assert not await sandbox.ping()
    with pytest.raises(SandboxBroken):
        await sandbox.read("x")
    await sandbox.close()
    await sandbox.close()

    async def alive() -> bool:
        return is_alive(int(token["pid"]), int(token["started"]))

    await until(alive, lambda seen: not seen)


async def test_a_warden_that_hangs_is_ended_with_its_sandbox(sandbox: Sandbox, driver: BubblewrapDriver) -> None:
    """A cancel does not wait for an answer that does not come."""
    started = asyncio.Event()
    running = asyncio.create_task(sandbox.run(["sh", "-c", "echo up; sleep 1000"], on_line=lambda *_: started.set()))
    await started.wait()
    os.kill(int(driver.token(sandbox)["pid"]), signal.SIGSTOP)
    async with asyncio.timeout(2):
        running.cancel()
        await asyncio.wait([running])
    assert not await sandbox.ping()


async def test_a_callback_that_fails(sandbox: Sandbox) -> None:
    """Its error is the caller's, and nothing runs on."""

    def fail(*_: object) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        await sandbox.run(["sh", "-c", "echo x; sleep 1000"], on_line=fail)
    assert not await sandbox.ping()


async def test_files(sandbox: Sandbox) -> None:
    await sandbox.write("a.txt", b"1")
    await sandbox.write("a.txt", b"")
    await sandbox.write("folder/b.txt", b"two")
    await sandbox.run(["ln", "-s", "a.txt", "link"])
    assert await sandbox.list() == [("a.txt", "file", 0), ("folder", "folder", 60), ("link", "link", 5)]
    assert await sandbox.list("folder") == [("b.txt", "file", 3)]
    with pytest.raises(SandboxRefused, match="nothing: No such file") as refusal:
        await sandbox.read("nothing")
    assert refusal.value.kind == "missing"
    with pytest.raises(BadOption, match="path"):
        await sandbox.read("")


async def test_a_snapshot_brings_the_files_to_another(sandbox: Sandbox, make: MakeSandbox) -> None:
    await sandbox.write("data/x", b"x" * 100_000)
    await sandbox.run(["sh", "-c", "echo '#!/bin/sh\necho ran' > tool; chmod +x tool; ln -s tool t; mkfifo pipe"])
    snapshot = await sandbox.snapshot()
    other = await make()
    await other.restore(snapshot)
    assert (await other.read("data/x")).data == b"x" * 100_000
    assert (await other.run(["./t"])).stdout == b"ran\n"
    with pytest.raises(SandboxRefused, match="no snapshot"):
        await other.restore(b"something else")
    with pytest.raises(SandboxRefused, match="larger than may be packed"):
        await other.snapshot(limit=10)
    assert await other.ping()


async def test_input_files_can_be_read_and_not_changed(make: MakeSandbox, tmp_path: Path) -> None:
    source = tmp_path / "data.csv"
    source.write_bytes(b"a,b\n1,2\n")
    source.chmod(0o600)
    sandbox = await make(inputs={"table/data.csv": source})
    assert (await sandbox.run(["cat", "/inputs/table/data.csv"])).stdout == b"a,b\n1,2\n"
    assert (await sandbox.read("/inputs/table/data.csv")).data == b"a,b\n1,2\n"
    for line in ("echo x > /inputs/table/data.csv", "rm /inputs/table/data.csv", "touch /inputs/new"):
        assert (await sandbox.run(["sh", "-c", line])).code != 0
    assert source.read_bytes() == b"a,b\n1,2\n"
    for name, path, why in (("x", tmp_path / "none", "No such file"), ("x", tmp_path, "is no file")):
        with pytest.raises(BadOption, match=why):
            await make(inputs={name: path})
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate((SMALL.disk_mb + 1) << 20)
    with pytest.raises(BadOption, match="larger than disk_mb=16"):
        await make(inputs={"big": big})


async def test_numeric_work_is_possible(make: MakeSandbox) -> None:
    """The filter and the limits leave room for threads, pipes, sockets among its own, and subprocesses."""
    sandbox = await make()
    program = (
        "import concurrent.futures, multiprocessing, socket, sqlite3, subprocess, tempfile, threading\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with concurrent.futures.ThreadPoolExecutor(4) as p: print(sum(p.map(double, range(10))))\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as p: print(p.map(double, [1, 2]))\n"
        "    s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n"
        "    print(subprocess.check_output(['echo', 'sub'], text=True).strip())\n"
        "    print(sqlite3.connect('x.db').execute('select 1').fetchone())\n"
        "    tempfile.TemporaryFile().write(b'x')\n"
    )
    await sandbox.write("work.py", program.encode())
    outcome = await sandbox.run(["python3", "work.py"])
    assert outcome.stdout == b"90\n[2, 4]\nsub\n(1,)\n", outcome


@pytest.mark.parametrize(
    "option, value",
    [
        ("memory_mb", 0),
        ("memory_mb", "1G"),
        ("cpus", 0),
        ("cpu_seconds", 0),
        ("processes", 0),
        ("disk_mb", 0),
        ("files", 1),
        ("open_files", 1),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("output_bytes", -1),
        ("flood_bytes", 1),
        ("network", "yes"),
    ],
)
def test_a_limit_that_cannot_be(option: str, value: Any) -> None:
    with pytest.raises(BadOption, match=rf"^{option}: "):
        Limits(**{option: value})


@pytest.mark.parametrize(
    "option, value",
    [
        ("packages", ("--index-url=http://x",)),
        ("packages", ("./here",)),
        ("packages", "pandas"),
        ("inputs", {"../x": Path("/x")}),
        ("inputs", {"/x": Path("/x")}),
        ("inputs", {"": Path("/x")}),
        ("limits", None),
        ("image", 1),
    ],
)
def test_a_spec_that_cannot_be(option: str, value: Any) -> None:
    with pytest.raises(BadOption, match=rf"^{option}: "):
        SandboxSpec(**{option: value})


@pytest.mark.parametrize("argv", ["ls -l", [], [1], ["a\0b"], None])
async def test_a_command_that_cannot_be(sandbox: Sandbox, argv: Any) -> None:
    with pytest.raises(BadOption, match="argv"):
        await sandbox.run(argv)


async def test_what_bubblewrap_cannot_do(make: MakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadOption, match="image"):
        await make(image="python:3.12")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxUnavailable, match="not installed"):
        await BubblewrapDriver().create(SandboxSpec(), id="x")


async def test_what_bubblewrap_says_is_told(
    driver: BubblewrapDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where namespaces are forbidden, the refusal has bubblewrap's own reason."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    tmp_path.chmod(0o755)
    driver._program = str(program)
    monkeypatch.setattr("bullpen.agents.sandbox.bubblewrap.starting._user", lambda: None)
    with pytest.raises(SandboxUnavailable, match="No permissions to create new namespace"):
        await driver.create(SandboxSpec(), id="x")


def test_the_ladder() -> None:
    assert Level.NONE < Level.PROCESS < Level.NAMESPACE < Level.CONTAINER < Level.MICROVM
    require(Level.NAMESPACE, Level.NAMESPACE)
    require(Level.NAMESPACE, Level.MICROVM)
    with pytest.raises(IsolationTooWeak, match="code_execute needs container isolation, and has namespace"):
        require(Level.CONTAINER, Level.NAMESPACE, "code_execute")
