"""Server-sent events out of bytes, wherever the network cut them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_EVENT_BYTES = 4_194_304

_LINE_END = re.compile(rb"\r\n|\n|\r")


class ServerEvent(NamedTuple):
    data: str
    name: str = ""


class EventReader:
    """Give it bytes as they come, take the events that they complete."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._size = 0
        self._was_return = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """ValueError if an event is larger than any answer would be."""
        if not chunk:
            return
        was_return, self._was_return = self._was_return, chunk.endswith(b"\r")
        if was_return:
            # The second half of a line's end, of which the first half has ended the line already.
            chunk = chunk.removeprefix(b"\n")
        self._size += len(chunk)
        if self._size > MAX_EVENT_BYTES:
            raise ValueError(f"one event is over {MAX_EVENT_BYTES:,} bytes")
        self._rest.append(chunk)
        # Joined only when a line has ended, so that a long line in small chunks stays cheap.
        if _LINE_END.search(chunk):
            *lines, rest = _LINE_END.split(b"".join(self._rest))
            self._rest = [rest]
            for line in lines:
                yield from self._line(line.decode(errors="replace"))
            self._size = len(rest) + sum(map(len, self._data))

    def _line(self, line: str) -> Iterator[ServerEvent]:
        if not line:
            if self._data:
                yield ServerEvent("\n".join(self._data), self._name)
            self._name, self._data = "", []
            return
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field.removeprefix("\ufeff"):
            case "data":
                self._data.append(value)
            case "event":
                self._name = value
            case _:
                pass  # a comment, an id, or a time to reconnect after: we do not
