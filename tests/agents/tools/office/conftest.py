import struct
import zlib
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

from tests.agents.tools.office.kept import Kept


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def png() -> bytes:
    """Two pixels by one."""
    return make_png(2, 1)


def make_png(width: int, height: int, *, claims: tuple[int, int] | None = None) -> bytes:
    """A grey picture; `claims` is what its head says, true or not."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + b"\x80" * width) * height
    head = struct.pack(">IIBBBBB", *(claims or (width, height)), 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture
def nothing_blocks() -> Iterator[BlockBuster]:
    """What blocks the event loop from our code is an error."""
    with blockbuster_ctx("bullpen") as watching:
        yield watching
