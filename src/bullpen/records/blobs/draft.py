"""How a blob is written down: one byte that says how, then the bytes, compressed where that helps.

Its name is the SHA-256 of the bytes themselves, so that the same bytes are the same blob however they were packed.
"""

import hashlib
import zlib
from collections.abc import AsyncIterator
from typing import IO

from bullpen.errors import BlobDamaged

PLAIN, DEFLATED = b"\x00", b"\x01"
_SAMPLE = 1 << 16
_LEVEL = 3
"""Near the best of zlib's for text, at several times the speed."""
_WORTH = 0.95


class Draft:
    """A blob that is being written, and has no name yet. Not for two threads at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.size = 0
        self._digest = hashlib.sha256()
        self._deflate: zlib._Compress | None = None
        self._begun = False
        self._name = ""

    def write(self, data: bytes) -> None:
        if not data:
            return
        if not self._begun:
            self._begin(data)
        self.size += len(data)
        self._digest.update(data)
        self.file.write(data if self._deflate is None else self._deflate.compress(data))

    def _begin(self, first: bytes) -> None:
        self._begun = True
        sample = first[:_SAMPLE]
        if len(zlib.compress(sample, 1)) < _WORTH * len(sample):
            self._deflate = zlib.compressobj(_LEVEL)
        self.file.write(PLAIN if self._deflate is None else DEFLATED)

    def finish(self) -> str:
        """No more is written; its name. Safe to call twice."""
        if not self._name:
            if not self._begun:
                self._begin(b"")
            if self._deflate is not None:
                self.file.write(self._deflate.flush())
            self.file.flush()
            self._name = self._digest.hexdigest()
        return self._name


class Unpacking:
    """The bytes of a blob from those that were written, checked against its name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._digest = hashlib.sha256()
        self._how = b""
        self._inflate = zlib.decompressobj()

    def take(self, stored: bytes) -> bytes:
        if not self._how:
            self._how, stored = stored[:1], stored[1:]
            if self._how not in (PLAIN, DEFLATED):
                raise self._damaged("it begins with what no blob begins with")
        data = stored if self._how == PLAIN else self._inflated(stored)
        self._digest.update(data)
        return data

    def _inflated(self, stored: bytes) -> bytes:
        try:
            return self._inflate.decompress(stored)
        except zlib.error as error:
            raise self._damaged(str(error)) from None

    def check(self) -> None:
        """BlobDamaged if the whole is not what the name says."""
        if not self._how or (self._how == DEFLATED and not self._inflate.eof):
            raise self._damaged("it breaks off")
        if self._digest.hexdigest() != self._name:
            raise self._damaged("it is not what was written")

    def _damaged(self, why: str) -> BlobDamaged:
        return BlobDamaged(f"blob {self._name} is damaged: {why}")


async def unpacked(name: str, stored: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The bytes of a blob in parts. The last is given only after all were checked."""
    unpacking = Unpacking(name)
    held = b""
    async for part in stored:
        if held:
            yield held
        held = unpacking.take(part)
    unpacking.check()
    yield held
