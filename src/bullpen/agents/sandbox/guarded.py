"""A sandbox with a warden in it, whatever its walls are made of."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from bullpen.agents.sandbox.base import (
    Changes,
    Ending,
    FileContent,
    FileEntry,
    Level,
    OnLine,
    Outcome,
    limits_on_the_wire,
)
from bullpen.agents.sandbox.limits import SandboxSpec, check_seconds
from bullpen.agents.sandbox.output import Output
from bullpen.agents.sandbox.turns import Turns
from bullpen.agents.sandbox.wire import CHUNK, Channel, Head, Wire
from bullpen.errors import BadOption, SandboxBroken, SandboxRefused

_LOG = logging.getLogger("bullpen.agents.sandbox")
T = TypeVar("T")

_LATE_S = 2.0
"""How long after its time a command may take to be ended by the warden, before the sandbox is."""
_GIVE_UP_S = 1.0
_FILE_S = 120.0
_PING_S = 2.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = {"PATH": _PATH, "HOME": "/workspace", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108
_KINDS = ("file", "folder", "link", "other")


class GuardedSandbox:
    def __init__(
        self,
        id: str,  # noqa: A002
        level: Level,
        spec: SandboxSpec,
        channel: Channel,
        *,
        count_files: bool = False,
    ) -> None:
        self.id = id
        self.level = level
        self.spec = spec
        self.channel = channel
        self._wire = Wire(channel)
        self._count_files = count_files
        self._turns = Turns()
        self._killed = self._gone = self._closed = False

    async def greet(self, within: float = 30.0) -> None:
        """Wait until it is ready."""
        try:
            async with asyncio.timeout(within):
                await self._wire.greet()
        except TimeoutError:
            raise SandboxBroken("the sandbox did not start in time") from None

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        timeout: float | None = None,  # noqa: ASYNC109
        on_line: OnLine | None = None,
    ) -> Outcome:
        _check_argv(argv)
        limits = self.spec.limits
        seconds = limits.timeout if timeout is None else timeout
        check_seconds("timeout", seconds)
        output = Output(limits.output_bytes, on_line)
        request = {
            "argv": list(argv),
            "env": {**_ENVIRONMENT, **self._of_packages(), **(env or {})},
            "cwd": cwd,
            "limits": limits_on_the_wire(limits, seconds, count_files=self._count_files),
        }
        async with self._turns.turn():
            self.channel.oom_killed()  # what was before is not this command's
            try:
                async with asyncio.timeout(seconds + _LATE_S):
                    last = await self._unbroken(self._wire.ask("run", stdin, output.take, **request))
            except TimeoutError:
                await self.kill()
                return output.outcome(Ending.TIMEOUT, None)
            except SandboxRefused as error:
                if error.kind != "not-started":
                    raise
                output.take("stderr", f"{error}\n".encode())
                return output.outcome(Ending.EXIT, 127)
            except SandboxBroken:
                if not self._killed:
                    raise
                return output.outcome(Ending.KILLED, None)
        try:
            return self._judge(output, last)
        except (KeyError, TypeError, ValueError) as error:
            await self._give_up()
            raise SandboxBroken("the sandbox sent what is no answer") from error

    def _of_packages(self) -> dict[str, str]:
        return {"PYTHONPATH": "/packages"} if self.spec.packages else {}

    def _judge(self, output: Output, last: Head) -> Outcome:
        ended, code = Ending(last["ended"]), int(last["code"])
        spent = {"seconds": float(last["seconds"]), "cpu_seconds": float(last["cpu_seconds"])}
        cut = {name: bool(last[name]) for name in ("stdout_cut", "stderr_cut")}
        if ended in (Ending.EXIT, Ending.SIGNAL) and code != 0 and self.channel.oom_killed():
            ended = Ending.OUT_OF_MEMORY
        return output.outcome(ended, code, **cut, **spent)

    # ── files ────────────────────────────────────────────────────────────────────────────

    async def write(self, path: str, data: bytes) -> None:
        _check_path(path)
        async with self._turns.turn():
            for start in range(0, max(1, len(data)), CHUNK):
                await self._ask("write", data[start : start + CHUNK], path=path, append=start > 0)

    async def read(self, path: str, *, limit: int = 10_000_000) -> FileContent:
        _check_path(path)
        data = bytearray()
        async with self._turns.turn():
            last = await self._ask("read", on_part=_collect(data, limit), path=path, limit=limit)
        return FileContent(bytes(data), bool(last.get("cut")))

    async def list(self, path: str = ".") -> list[FileEntry]:
        _check_path(path)
        async with self._turns.turn():
            last = await self._ask("list", path=path)
        try:
            return [_entry(one) for one in last["entries"]]
        except (KeyError, TypeError, ValueError) as error:
            raise SandboxBroken("the sandbox sent what is no answer") from error

    async def snapshot(self, *, limit: int = 1_000_000_000) -> bytes:
        archive = bytearray()
        async with self._turns.turn():
            last = await self._ask("pack", on_part=_collect(archive, limit), limit=limit)
        self._warn_of_skipped(last)
        return bytes(archive)

    async def changes(self, since: int = 0, *, limit: int = 1_000_000_000) -> Changes:
        archive, names = bytearray(), bytearray()
        keep, name = _collect(archive, limit), _collect(names, limit)

        def take(part: str, body: bytes) -> None:
            (name if part == "gone" else keep)(part, body)

        async with self._turns.turn():
            last = await self._ask("pack", on_part=take, limit=limit, since=since)
        self._warn_of_skipped(last)
        gone = frozenset(bytes(names).split(b"\0")) - {b""}
        try:
            return Changes(bytes(archive), gone, is_all=bool(last["is_all"]), mark=int(last["mark"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SandboxBroken("the sandbox sent what is no answer") from error

    def _warn_of_skipped(self, last: Head) -> None:
        if last.get("skipped"):
            _LOG.warning(
                "a snapshot of sandbox %s lacks %r files that cannot be read, such as %r",
                self.id,
                last["skipped"],
                last.get("names"),
            )

    async def restore(self, snapshot: bytes) -> None:
        name = "/tmp/bullpen-snapshot"  # noqa: S108
        await self.write(name, snapshot)
        async with self._turns.turn():
            await self._ask("unpack", path=name)

    async def _ask(
        self, do: str, body: bytes = b"", on_part: Callable[[str, bytes], None] | None = None, **rest: object
    ) -> Head:
        try:
            async with asyncio.timeout(_FILE_S):
                return await self._unbroken(self._wire.ask(do, body, on_part, **rest))
        except TimeoutError:
            await self.kill()
            raise SandboxBroken("the sandbox no longer answers") from None

    # ── its end ──────────────────────────────────────────────────────────────────────────

    async def _unbroken(self, exchange: Awaitable[T]) -> T:
        """Let an exchange come to its end when the caller gives up: half an answer would spoil the next.

        What does not come to its end in a second ends with the sandbox.
        """
        task = asyncio.ensure_future(exchange)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                await self._end_exchange(task)
            raise
        except SandboxRefused:
            raise
        except Exception:
            await self._give_up()  # the rest of the answer is not to be taken for the next one
            raise

    async def _end_exchange(self, task: "asyncio.Future[Any]") -> None:
        with contextlib.suppress(SandboxBroken):
            await self._wire.tell_to_kill()
        await asyncio.wait([task], timeout=_GIVE_UP_S)
        if not task.done():
            await self.kill()
        with contextlib.suppress(SandboxBroken, SandboxRefused):
            await task

    async def ping(self) -> bool:
        if self._gone or self._turns.locked():
            return not self._gone  # who is at work answers for itself
        async with self._turns.turn():
            try:
                async with asyncio.timeout(_PING_S):
                    await self._unbroken(self._wire.ask("ping"))
            except (TimeoutError, SandboxBroken):
                return False
        return True

    async def kill(self) -> None:
        self._killed = True
        await self._give_up()

    async def _give_up(self) -> None:
        self._gone = True
        await self.channel.kill()

    async def close(self) -> None:
        if self._closed:
            return
        try:
            await self.kill()
        finally:
            await self.channel.close()
        self._closed = True


def _check_argv(argv: object) -> None:
    if isinstance(argv, str) or not isinstance(argv, Sequence) or not argv:
        raise BadOption(f"argv: the program and its arguments, such as ['sh', '-c', 'ls'], not {argv!r}")
    for word in argv:
        if not isinstance(word, str) or "\0" in word:
            raise BadOption(f"argv: each is text without a NUL, not {word!r}")


def _check_path(path: object) -> None:
    if not isinstance(path, str) or not path or "\0" in path:
        raise BadOption(f"path: a path in the workspace, not {path!r}")


def _collect(data: bytearray, limit: int) -> Callable[[str, bytes], None]:
    def take(_part: str, body: bytes) -> None:
        if len(data) + len(body) > limit:
            raise SandboxBroken("the sandbox sent more than was asked for")
        data.extend(body)

    return take


def _entry(told: Mapping[str, Any]) -> FileEntry:
    if told["kind"] not in _KINDS:
        raise ValueError(told["kind"])
    return FileEntry(str(told["name"]), told["kind"], int(told["bytes"]))
