"""What is more than one call to the server may hold, in several: it reads a mebibyte, as do proxies before it."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from bullpen.remote.messages import MAX_AT_ONCE, encode

T = TypeVar("T")

_PART_BYTES = 512 * 1024
LONGEST_LINE = 65_536
"""Of a line with more, the rest is cut off: the server would refuse it, and the lines with it."""


def in_parts(items: Iterable[T]) -> Iterator[list[T]]:
    """In their order, each with at least one; the same items are always cut at the same places."""
    part: list[T] = []
    room = _PART_BYTES
    for item in items:
        size = len(encode(item))
        if part and (size > room or len(part) == MAX_AT_ONCE):
            yield part
            part, room = [], _PART_BYTES
        part.append(item)
        room -= size
    if part:
        yield part
