"""The host's end of the wire to a warden. What comes from there is not trusted: sizes are bounded, words checked."""

import json
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from bullpen.agents.sandbox.warden.sending import program
from bullpen.errors import SandboxBroken, SandboxRefused

_MOST_HEAD = 4 << 20
_MOST_BODY = 1 << 20
CHUNK = 1 << 20

Head = dict[str, Any]


class Channel(Protocol):
    """Bytes to and from a warden, and its end."""

    async def write(self, data: bytes) -> None: ...

    async def read_exactly(self, count: int) -> bytes:
        """So many bytes; raises `EOFError` or `OSError` if it ended."""

    async def kill(self) -> None:
        """End the sandbox at once. Safe to call twice."""

    async def close(self) -> None:
        """Give back what is left of it, once it was killed."""

    def oom_killed(self) -> bool:
        """Whether the kernel ended something for want of memory since the last question."""


class Wire:
    """Requests and answers; one at a time, but for a kill."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._asked = 0

    async def greet(self) -> None:
        """Send the warden in, and hear that it is there."""
        await self._channel.write(program())
        await self._answer(0, _ignore)

    async def ask(
        self, do: str, body: bytes = b"", on_part: Callable[[str, bytes], None] | None = None, **rest: object
    ) -> Head:
        """Ask, and take the parts of the answer as they come; its last frame. Raises `SandboxRefused`."""
        self._asked += 1
        await self._send({"id": self._asked, "do": do, **rest}, body)
        return await self._answer(self._asked, on_part or _ignore)

    async def tell_to_kill(self) -> None:
        await self._send({"id": 0, "do": "kill"})

    async def _send(self, head: Head, body: bytes = b"") -> None:
        text = json.dumps({**head, "size": len(body)}).encode()
        try:
            await self._channel.write(struct.pack(">I", len(text)) + text + body)
        except (EOFError, OSError) as error:
            raise SandboxBroken("the sandbox ended") from error

    async def _answer(self, number: int, on_part: Callable[[str, bytes], None]) -> Head:
        async for head, body in self._frames():
            if head.get("id") != number:
                raise SandboxBroken("the sandbox answered what was not asked")
            if head.get("done"):
                if "refused" in head:
                    raise SandboxRefused(str(head.get("message", "")), str(head["refused"]))
                return head
            on_part(str(head.get("part", "")), body)
        raise SandboxBroken("the sandbox ended")

    async def _frames(self) -> AsyncIterator[tuple[Head, bytes]]:
        while True:
            try:
                (length,) = struct.unpack(">I", await self._channel.read_exactly(4))
                if length > _MOST_HEAD:
                    raise SandboxBroken("the sandbox sent what is no answer")
                head = json.loads(await self._channel.read_exactly(length))
                size = head.get("size", 0) if isinstance(head, dict) else None
                if not isinstance(size, int) or not 0 <= size <= _MOST_BODY:
                    raise SandboxBroken("the sandbox sent what is no answer")
                body = await self._channel.read_exactly(size)
            except (EOFError, OSError) as error:
                raise SandboxBroken("the sandbox ended") from error
            except ValueError as error:
                raise SandboxBroken("the sandbox sent what is no answer") from error
            yield head, body


def _ignore(_part: str, _body: bytes) -> None:
    pass
