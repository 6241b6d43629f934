"""The contract of a place where blobs lie, by name; what is in them is nothing to it."""

import re
from collections.abc import AsyncIterator
from typing import IO, NamedTuple, Protocol

from bullpen.errors import BlobMissing

_NAME = re.compile(r"[0-9a-f]{64}")


class Found(NamedTuple):
    """A blob that lies there."""

    name: str
    stored_bytes: int
    written_ms: int
    """When it was last written or asked to stay, by the clock of the place."""


class Home(Protocol):
    """All raise BlobsUnavailable where the place does not answer, or refuses."""

    def draft(self) -> IO[bytes]:
        """Somewhere to write to. It blocks: for a thread."""

    def drop(self, draft: IO[bytes]) -> None:
        """A draft that is not kept. It blocks, and is safe after `keep`."""

    async def keep(self, draft: IO[bytes], name: str) -> None:
        """Put it there under this name, whole or not at all, and safe from a loss of power."""

    async def stay(self, name: str) -> bool:
        """Whether it is there, and as young as one that was written now."""

    def read(self, name: str) -> AsyncIterator[bytes]:
        """What was written, in parts. BlobMissing."""

    async def find(self, name: str) -> Found | None: ...

    def all(self) -> AsyncIterator[Found]: ...

    async def remove(self, name: str) -> None:
        """Nothing happens if it is not there."""

    async def tidy(self, *, before_ms: int) -> None:
        """Remove drafts of this age that nobody can be writing any more."""


def check_name(name: str) -> str:
    """A name leads to nothing but a blob. BlobMissing for what cannot be one."""
    if not _NAME.fullmatch(name):
        raise BlobMissing(f"no blob {name!r}: a name is the SHA-256 in 64 small hexadecimal digits")
    return name
