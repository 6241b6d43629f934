"""The contract: a driver makes sandboxes, a sandbox runs commands and keeps files.

Whoever runs a tool states the least `Level` that it needs; `require` refuses what is below.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Literal, NamedTuple, Protocol

from bullpen.agents.sandbox.limits import Limits, SandboxSpec
from bullpen.errors import IsolationTooWeak

Stream = Literal["stdout", "stderr"]
OnLine = Callable[[Stream, bytes], None]
"""Called with each line as it comes, without its end; not for what is beyond the limit."""


class Level(IntEnum):
    """How strong the walls are; a higher one is stronger."""

    NONE = 0
    """The code runs in the worker itself."""
    PROCESS = 1
    """A process of its own: it can be ended, and may do all that the worker's user may."""
    NAMESPACE = 2
    """Namespaces on the host's kernel (bubblewrap): nothing of the host's files, processes or network."""
    CONTAINER = 3
    """A container that another program guards (Docker, gVisor)."""
    MICROVM = 4
    """A kernel of its own (E2B)."""


class Ending(StrEnum):
    """Why a command ended."""

    EXIT = "exit"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    CPU_TIME = "cpu-time"
    OUT_OF_MEMORY = "out-of-memory"
    PROCESSES = "processes"
    DISK_FULL = "disk-full"
    OUTPUT_LIMIT = "output-limit"
    KILLED = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a command went."""

    ended: Ending
    code: int | None
    """Its exit code, or the negative number of the signal that ended it; None if the sandbox ended with it."""
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_cut: bool = False
    """Whether it wrote more than is kept."""
    stderr_cut: bool = False
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.ended is Ending.EXIT and self.code == 0


class FileEntry(NamedTuple):
    name: str
    kind: Literal["file", "folder", "link", "other"]
    bytes: int


class FileContent(NamedTuple):
    data: bytes
    cut: bool
    """Whether the file has more than was asked for."""


class Changes(NamedTuple):
    """What is other in a workspace than it was at an earlier look."""

    archive: bytes
    """What is new or changed, or all of it."""
    gone: frozenset[bytes]
    """Names of what is no more, if this is not all."""
    is_all: bool
    mark: int
    """To be told at the next look, for what changed since this one."""


class Sandbox(Protocol):
    """A place where foreign code runs. One thing at a time: what is asked meanwhile waits its turn.

    A sandbox that ended raises `SandboxBroken`; whatever ran in it is gone, and its files too.
    """

    @property
    def id(self) -> str: ...

    @property
    def level(self) -> Level: ...

    @property
    def spec(self) -> SandboxSpec: ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        timeout: float | None = None,  # noqa: ASYNC109 - the sandbox enforces it
        on_line: OnLine | None = None,
    ) -> Outcome:
        """Run a command until it ends or is ended. With it ends all that it started.

        A cancelled call ends the command, within a second, and leaves the workspace.
        """

    async def write(self, path: str, data: bytes) -> None:
        """Write a file of the workspace, and the folders above it."""

    async def read(self, path: str, *, limit: int = 10_000_000) -> FileContent:
        """What is in a file of the workspace, or of `/inputs`."""

    async def list(self, path: str = ".") -> list[FileEntry]:
        """What is in a folder, by name; no more than 10,000."""

    async def snapshot(self, *, limit: int = 1_000_000_000) -> bytes:
        """The workspace as a compressed archive, without what cannot be read.

        SandboxRefused if its files, or the archive, have more bytes than the limit.
        """

    async def changes(self, since: int = 0, *, limit: int = 1_000_000_000) -> Changes:
        """What changed since the look that had this mark; all of the workspace if that was not the last one.

        By what is in the files: programs that write to memory leave no time. SandboxRefused as by `snapshot`.
        """

    async def restore(self, snapshot: bytes) -> None:
        """Put the files of a snapshot into the workspace."""

    async def ping(self) -> bool:
        """Whether it answers."""

    async def kill(self) -> None:
        """End it at once with all that runs in it; a command that runs comes back as killed."""

    async def close(self) -> None:
        """End it and give back all that it held. Safe to call twice; after an error it is to be called again."""


class Driver(Protocol):
    """A way to make sandboxes."""

    @property
    def name(self) -> str: ...

    @property
    def level(self) -> Level: ...

    async def create(self, spec: SandboxSpec, *, id: str) -> Sandbox:  # noqa: A002 - it is the id
        """Make one, empty and ready. Raises `SandboxUnavailable` where there is none of this kind."""

    def token(self, sandbox: Sandbox) -> dict[str, str | int]:
        """What another process needs to end it when this one died."""

    async def reap(self, token: Mapping[str, str | int]) -> None:
        """End what is left of a sandbox whose owner died; nothing if nothing is."""

    async def close(self) -> None:
        """Give back connections; its sandboxes are closed by who has them."""


def require(minimum: Level, given: Level, what: str = "this tool") -> None:
    """Refuse what would run with weaker walls than it asks for."""
    if given < minimum:
        raise IsolationTooWeak(f"{what} needs {minimum.name.lower()} isolation, and has {given.name.lower()}")


def limits_on_the_wire(limits: Limits, timeout: float, *, count_files: bool) -> dict[str, object]:
    """The limits as the warden takes them."""
    return {
        "memory_bytes": limits.memory_bytes,
        "disk_bytes": limits.disk_bytes,
        "processes": limits.processes,
        "open_files": limits.open_files,
        "files": limits.files if count_files else None,
        "cpu_s": limits.cpu_seconds,
        "timeout_s": timeout,
        "output_bytes": limits.output_bytes,
        "flood_bytes": limits.flood_bytes,
    }
