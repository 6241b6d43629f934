"""What a command writes: kept up to a limit, and told line by line."""

from typing import Any, get_args

from bullpen.agents.sandbox.base import Ending, OnLine, Outcome, Stream
from bullpen.errors import SandboxBroken

_LONGEST_LINE = 65_536
_STREAMS = get_args(Stream)


class Output:
    def __init__(self, limit: int, on_line: OnLine | None) -> None:
        self._limit = limit
        self._on_line = on_line
        self._kept: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._begun: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def take(self, part: str, data: bytes) -> None:
        """Bytes of one of the streams, as the warden sends them: never more than the limit."""
        for stream in _STREAMS:
            if part == stream:
                break
        else:
            raise SandboxBroken("the sandbox sent what is no answer")
        kept = self._kept[stream]
        if len(kept) + len(data) > max(self._limit, _LONGEST_LINE):
            raise SandboxBroken("the sandbox sent more than was asked for")
        kept.extend(data)
        if self._on_line is not None:
            self._tell(self._on_line, stream, data)

    def _tell(self, on_line: OnLine, stream: Stream, data: bytes) -> None:
        begun = self._begun[stream]
        begun.extend(data)
        *lines, rest = bytes(begun).split(b"\n")
        if len(rest) >= _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        self._begun[stream] = bytearray(rest)
        for line in lines:
            on_line(stream, line)

    def outcome(self, ended: Ending, code: int | None, **rest: Any) -> Outcome:
        """The whole of it, with the last lines told that had no end."""
        if self._on_line is not None:
            for stream, begun in self._begun.items():
                if begun:
                    self._on_line(stream, bytes(begun))
        kept = {name: bytes(data) for name, data in self._kept.items()}
        return Outcome(ended=ended, code=code, stdout=kept["stdout"], stderr=kept["stderr"], **rest)
