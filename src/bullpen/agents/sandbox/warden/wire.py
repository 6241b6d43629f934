"""Frames: four bytes with the length of a JSON object, the object, and `size` bytes after it."""

import json
import os
import struct
import sys
from typing import Any

Head = dict[str, Any]

CHUNK = 1 << 16


class Refused(Exception):
    """A request that cannot be done; the message goes to who asked."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Wire:
    """Frames in and out, on descriptors that no command inherits."""

    def __init__(self) -> None:
        self.fd_in, self.fd_out = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.close(nothing)

    def receive(self) -> tuple[Head, bytes]:
        (length,) = struct.unpack(">I", self._exactly(4))
        head: Head = json.loads(self._exactly(length))
        return head, self._exactly(head.get("size", 0))

    def send(self, head: Head, body: bytes = b"") -> None:
        text = json.dumps({**head, "size": len(body)}).encode()
        rest = memoryview(struct.pack(">I", len(text)) + text + body)
        while rest:
            rest = rest[os.write(self.fd_out, rest) :]

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = os.read(self.fd_in, min(count, CHUNK))
            if not part:
                sys.exit(0)  # the owner is gone
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
