"""Code that tries to get out: it fails, and host and sandbox are well afterwards."""

import asyncio
import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.agents.sandbox import BubblewrapDriver, Sandbox
from bullpen.errors import SandboxRefused
from tests.agents.sandbox.conftest import SMALL, MakeSandbox
from tests.agents.sandbox.trying import python, shell

pytestmark = pytest.mark.usefixtures("all_is_well_afterwards")


# ── seeing the host ──────────────────────────────────────────────────────────────────────


async def test_files_of_the_host_are_not_there(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the host's")
    secret.chmod(0o644)
    for path in (secret, "/etc/shadow", "/root", "/home", "/var", "/sys", "/run", "/boot", Path.cwd(), __file__):
        outcome = await sandbox.run(["ls", str(path)])
        assert outcome.code != 0, path
        assert b"No such file" in outcome.stderr, path


async def test_only_the_root_that_was_laid_out(sandbox: Sandbox) -> None:
    names = set((await shell(sandbox, "ls /")).stdout.decode().split())
    assert names <= {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "workspace"}
    etc = set((await shell(sandbox, "ls /etc")).stdout.decode().split())
    assert not etc & {"shadow", "hostname", "machine-id", "resolv.conf", "hosts", "ssh"}


async def test_the_hosts_environment_is_not_there(make: MakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "very-secret-4711")
    sandbox = await make()
    seen = await shell(sandbox, "env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert b"very-secret-4711" not in seen.stdout + seen.stderr
    names = {line.partition("=")[0] for line in seen.stdout.decode().splitlines()}
    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "LC_CTYPE"}


async def test_there_is_no_network(sandbox: Sandbox) -> None:
    """Neither the world, nor what listens at the host's loopback, nor its abstract sockets."""
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        program = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        outcome = await python(sandbox, program)
    assert outcome.code == 1
    assert b"ConnectionRefusedError" in outcome.stderr or b"unreachable" in outcome.stderr
    links = await shell(sandbox, "cat /proc/net/dev | tail -n +3 | cut -d: -f1")
    assert links.stdout.split() == [b"lo"]


async def test_a_network_is_there_if_it_is_allowed(make: MakeSandbox) -> None:
    """So that the test above tests what it says."""
    sandbox = await make(limits=dataclasses.replace(SMALL, network=True))
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        outcome = await python(sandbox, f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)")
    assert outcome.ok, outcome


async def test_another_sandbox_is_out_of_reach(sandbox: Sandbox, make: MakeSandbox) -> None:
    other = await make()
    await other.write("mine.txt", b"the other's")
    await shell(other, "echo x > /tmp/mine.txt; echo x > /dev/shm/mine.txt")
    sleeping = asyncio.create_task(shell(other, "exec sleep 1234.5678"))
    seen = await shell(sandbox, "find /workspace /tmp /dev/shm -name 'mine*'; cat /proc/*/cmdline")
    assert b"mine" not in seen.stdout.replace(b"find", b"").split(b"\0")[0]
    assert b"1234.5678" not in seen.stdout
    await shell(sandbox, "kill -9 -1")
    assert not sleeping.done()
    assert (await other.ping()) is True
    sleeping.cancel()
    await asyncio.wait([sleeping])


async def test_the_hosts_processes_are_not_there(sandbox: Sandbox) -> None:
    """Not in /proc, and no number reaches them."""
    victim = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        seen = await shell(sandbox, f"ls -d /proc/{os.getpid()} /proc/{victim.pid}; ls -d /proc/[0-9]*")
        assert len(seen.stdout.split()) <= 4
        outcome = await python(
            sandbox,
            "import os\n"
            f"for pid in ({victim.pid}, {os.getpid()}):\n"
            "    try: os.kill(pid, 9)\n"
            "    except ProcessLookupError: print('none')\n",
        )
        assert outcome.stdout.split() == [b"none", b"none"]
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.communicate()


async def test_the_kernels_files_are_closed(sandbox: Sandbox) -> None:
    """What is the whole machine's in /proc can be neither changed nor read where it would tell."""
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"):
        outcome = await shell(sandbox, f"echo 1 > {path}")
        assert outcome.code != 0, path
    outcome = await shell(sandbox, "head -c 1 /proc/kcore /proc/1/mem /proc/kmsg")
    assert outcome.code != 0
    assert outcome.stdout.strip() == b""


# ── changing the host, gaining rights ────────────────────────────────────────────────────


async def test_nothing_can_be_written_but_scratch(sandbox: Sandbox) -> None:
    """Every mount that can be written to is small, or part of the kernel's own interface."""
    outcome = await shell(sandbox, "cat /proc/self/mountinfo")
    for line in outcome.stdout.decode().splitlines():
        before, _, after = line.partition(" - ")
        place, options = before.split()[4:6]
        kind, _, of_disk = after.split()
        if (
            "ro" in options.split(",")
            or kind in {"proc", "devpts"}
            or (place.startswith("/dev/") and kind == "devtmpfs")
        ):
            continue
        assert kind == "tmpfs", line
        assert "size=" in of_disk, line
    for place in ("/", "/usr", "/etc", "/dev", "/bin", "/usr/lib", "/proc"):
        assert (await shell(sandbox, f"echo x > {place}/x")).code != 0, place
    assert (await shell(sandbox, "echo x >> /usr/bin/env")).code != 0
    assert (await shell(sandbox, "mount -o remount,rw /usr")).code != 0


async def test_no_rights_are_gained(sandbox: Sandbox) -> None:
    """Setuid programs do not work, nor does anything that needs a capability, and none can be had."""
    status = (await shell(sandbox, "cat /proc/self/status")).stdout.decode()
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["NoNewPrivs"] == "1"
    assert {int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    for attempt in (
        "import os; os.setuid(0)",
        "import os; os.mknod('/workspace/sda', 0o60666, os.makedev(8, 0))",
        "import os; os.mknod('/workspace/mem', 0o20666, os.makedev(1, 1))",
        "import os; os.chroot('/workspace')",
        "import os; os.sched_setaffinity(0, range(64))",
        "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); os._exit(0 if c.unshare(0x10000000) == 0 else 1)",
        "import ctypes, os; c = ctypes.CDLL(None); os._exit(0 if c.ptrace(16, 1, 0, 0) == 0 else 1)",
        "import ctypes, os; c = ctypes.CDLL(None); os._exit(0 if c.mount(b'x', b'/tmp', b'tmpfs', 0, 0) == 0 else 1)",
    ):
        assert (await python(sandbox, attempt)).code == 1, attempt
    copied = "cp /usr/bin/id /workspace/id && chmod 4755 /workspace/id && /workspace/id -u"
    assert (await shell(sandbox, copied)).stdout.strip() == b"1000"


async def test_devices_are_the_harmless_ones(sandbox: Sandbox) -> None:
    outcome = await shell(sandbox, "find /dev -type b -o -type c | sort")
    names = {line.removeprefix("/dev/").partition("/")[0] for line in outcome.stdout.decode().split()}
    assert names <= {"full", "null", "random", "tty", "urandom", "zero", "pts", "console"}


async def test_the_sandbox_user_is_not_the_hosts_root(sandbox: Sandbox, driver: BubblewrapDriver) -> None:
    """Where the worker is root, whoever gets out is nobody."""
    pid = driver.token(sandbox)["pid"]
    if os.geteuid() == 0:
        line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("Uid:"))
        assert "0" not in line.split()[1:]


# ── links ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def below_tmp() -> Iterator[Path]:
    """Of the host; the sandbox has a `/tmp` of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


async def test_a_link_out_of_the_workspace_leads_nowhere(sandbox: Sandbox, below_tmp: Path) -> None:
    """Also for the worker, that reads and writes files of the workspace from outside."""
    target = below_tmp / "host.txt"
    target.write_text("the host's")
    target.chmod(0o666)
    links = f"ln -s {target} file; ln -s {below_tmp} folder; ln -s /etc etc; ln -s / root; ln -s ../../.. up"
    assert (await shell(sandbox, links)).ok
    for path in ("etc/passwd", "root/etc/passwd", "up/etc/passwd", "/etc/passwd", "../etc"):
        for attempt in (sandbox.read(path), sandbox.write(path, b"changed")):
            with pytest.raises(SandboxRefused) as refusal:
                await attempt
            assert refusal.value.kind == "outside", path
    for path in ("file", "folder/host.txt"):
        with pytest.raises(SandboxRefused, match="No such file"):
            await sandbox.read(path)
    for path in ("file", "folder/host.txt"):
        await sandbox.write(path, b"the sandbox's")
    assert target.read_text() == "the host's"
    snapshot = await sandbox.snapshot()
    await sandbox.restore(snapshot)
    assert target.read_text() == "the host's"


async def test_a_file_that_never_ends_is_refused(sandbox: Sandbox) -> None:
    """A FIFO or a device in the place of a file does not hold the worker."""
    await shell(sandbox, "mkfifo pipe; ln -s /dev/zero zero; ln -s /proc/self/mem mem; mkdir folder")
    for path in ("pipe", "zero", "mem", "folder"):
        with pytest.raises(SandboxRefused):
            await sandbox.read(path)


async def test_an_archive_with_paths_out_stays_in(sandbox: Sandbox, tmp_path: Path) -> None:
    program = (
        "import tarfile, io\n"
        "with tarfile.open('/workspace/evil.tgz', 'w:gz') as t:\n"
        f"    for name in ('../../../../{tmp_path}/got-out', '/{tmp_path}/got-out', 'fine.txt'):\n"
        "        i = tarfile.TarInfo(name); i.size = 1; t.addfile(i, io.BytesIO(b'x'))\n"
    )
    assert (await python(sandbox, program)).ok
    evil = (await sandbox.read("evil.tgz")).data
    try:
        await sandbox.restore(evil)
    except SandboxRefused:
        pass
    assert list(tmp_path.iterdir()) == []
