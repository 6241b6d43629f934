"""Starts bubblewrap.

A worker that is root starts it as a user that owns nothing, another one for each sandbox: the kernel
does not limit the processes of root, and whoever got out would be nobody. Any other worker starts
it as itself.
"""

import asyncio
import contextlib
import json
import os
import random
import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from bullpen.agents.sandbox.bubblewrap.arguments import GROUPS, USERS, bootstrap, namespaces, scratch, system
from bullpen.agents.sandbox.bubblewrap.process import BubblewrapChannel, read_complaint
from bullpen.agents.sandbox.bubblewrap.seccomp import filter_program
from bullpen.agents.sandbox.cgroups import Cgroups, Group
from bullpen.agents.sandbox.limits import Limits, SandboxSpec
from bullpen.errors import BadOption, SandboxUnavailable

_NOBODY = 65_534
_FIRST_USER, _USERS = 1_900_000_000, 50_000_000
"""A range that no distribution gives to people, services or containers."""


class _Files(contextlib.ExitStack):
    """Open files that bubblewrap is handed by number."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []

    def take(self, fd: int) -> str:
        self.callback(os.close, fd)
        self.numbers.append(fd)
        return str(fd)

    def of_bytes(self, data: bytes) -> str:
        fd = os.memfd_create("bullpen")
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        return self.take(fd)


async def start(
    programs: tuple[str, str], spec: SandboxSpec, *, packages: Path | None, cgroups: Cgroups | None, name: str
) -> BubblewrapChannel:
    """A bubblewrap of these limits, whose warden waits for its program; `programs` are its own path and Python's."""
    bwrap, python = programs
    (ours, theirs), (told, tell) = socket.socketpair(), socket.socketpair()
    said = os.memfd_create("said")
    with told, contextlib.ExitStack() as unless_started:
        unless_started.callback(ours.close)
        unless_started.callback(os.close, said)
        with theirs, tell, _Files() as files:
            arguments = [bwrap, "--info-fd", str(tell.fileno()), *_arguments(spec, python, packages, files)]
            # Here and not in another thread: bubblewrap ends with the thread that started it.
            process = _spawn(arguments, [tell.fileno(), *files.numbers], theirs, said, name)
        unless_started.pop_all()
        try:
            pid = await _told_pid(told)
            if pid is not None:
                _bound(pid, spec.limits, group := cgroups.group(name) if cgroups else None)
                return BubblewrapChannel(process, pid, ours, group, said)
        except ProcessLookupError:
            pass  # it told, and ended
        except BaseException:
            _end(process, ours, said)
            raise
    raise SandboxUnavailable(f"bubblewrap made no sandbox: {_end(process, ours, said)}")


def _end(process: "subprocess.Popen[bytes]", wire: socket.socket, said: int) -> str:
    """Let go of one that came to nothing; what it complained of."""
    process.kill()
    process.wait()
    wire.close()
    complaint = read_complaint(said)
    os.close(said)
    return complaint


def _bound(pid: int, limits: Limits, group: Group | None) -> None:
    """Hold it to its cores and its control group before anything runs in it."""
    if group is not None:
        group.hold(pid, limits)
    with contextlib.suppress(OSError):  # it ended already: the greeting will say so
        cores = sorted(os.sched_getaffinity(0))
        wanted = max(1, min(len(cores), -int(-limits.cpus // 1)))
        os.sched_setaffinity(pid, random.sample(cores, wanted))


def _arguments(spec: SandboxSpec, python: str, packages: Path | None, files: _Files) -> Iterator[str]:
    network = spec.limits.network
    yield from namespaces(network=network)
    if (program := filter_program()) is not None:
        yield from ("--seccomp", files.of_bytes(program))
    yield from system(python, network=network)
    for name, text in (("passwd", USERS), ("group", GROUPS)):
        yield from ("--ro-bind-data", files.of_bytes(text.encode()), f"/etc/{name}")
    if packages is not None:
        yield from ("--ro-bind", str(packages), "/packages")
    yield from _inputs(spec, files)
    yield from scratch(spec)
    yield from bootstrap(python)


def _inputs(spec: SandboxSpec, files: _Files) -> Iterator[str]:
    """Copies, since the sandbox's user may not be able to reach the originals."""
    size = 0
    for name, path in spec.inputs.items():
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise BadOption(f"inputs: {name}: {path}: {error.strerror}") from error
        number = files.take(fd)
        if not Path(path).is_file():
            raise BadOption(f"inputs: {name}: {path} is no file")
        size += os.fstat(fd).st_size
        if size > spec.limits.disk_bytes:
            raise BadOption(f"inputs: {name}: all inputs together are larger than disk_mb={spec.limits.disk_mb}")
        yield from ("--perms", "0444", "--ro-bind-data", number, f"/inputs/{name}")


def _spawn(
    arguments: Sequence[str], files: Sequence[int], wire: socket.socket, said: int, name: str
) -> "subprocess.Popen[bytes]":
    user = _user()
    return subprocess.Popen(  # noqa: S603 - bubblewrap, with arguments of ours
        arguments,
        stdin=wire.fileno(),
        stdout=wire.fileno(),
        stderr=said,
        pass_fds=files,
        env=dict([mark(name).split("=")]),
        cwd="/",
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )


def mark(name: str) -> str:
    """How a bubblewrap is known from outside: its environment, of which the sandbox sees nothing."""
    return f"SANDBOX={name}"


def is_root() -> bool:
    return os.geteuid() == 0


def _user() -> int | None:
    if not is_root():
        return None
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first <= _FIRST_USER and first + count >= _FIRST_USER + _USERS:
            return _FIRST_USER + secrets.randbelow(_USERS)
    return _NOBODY


async def _told_pid(told: socket.socket) -> int | None:
    """The process id of the sandbox's process 1, as bubblewrap tells; None if it gave up."""
    told.setblocking(False)
    text = b""
    while part := await asyncio.get_running_loop().sock_recv(told, 4096):
        text += part
        with contextlib.suppress(ValueError):  # there is more of it
            return int(json.loads(text)["child-pid"])
    return None
