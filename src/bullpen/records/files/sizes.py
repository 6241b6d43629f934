"""How large a file may be: by one setting, for whatever way it comes."""

from collections.abc import AsyncIterable, AsyncIterator

from bullpen.errors import PayloadTooLarge
from bullpen.settings import whole_from

FILE_MB = "BULLPEN_FILE_MB"
_USUAL_MB, _MOST_MB = 100, 1_000_000
_MB = 1 << 20
_PART = 1 << 20

Data = bytes | AsyncIterable[bytes]


async def limited(data: Data) -> AsyncIterator[bytes]:
    """The data in parts. PayloadTooLarge as soon as they are too many."""
    if isinstance(data, bytes):
        check_size(len(data))
        for start in range(0, len(data), _PART):
            yield data[start : start + _PART]
        return
    size = 0
    async for part in data:
        size += len(part)
        check_size(size)
        yield part


def check_size(size: int) -> None:
    """PayloadTooLarge, which names the limit and the setting that has it."""
    if size > (most := most_bytes()):
        raise PayloadTooLarge(f"data: a file may have {most // _MB} MB, by {FILE_MB}")


def most_bytes() -> int:
    """Of a file."""
    return whole_from(FILE_MB, _USUAL_MB, 1, _MOST_MB) * _MB
