"""Lists that are read a page at a time, and their cursors."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from bullpen.errors import BadOption

T = TypeVar("T")

MOST = 500
"""Of one page."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    items: tuple[T, ...]
    next_cursor: str | None
    """Give it back for the next page; None at the end."""


def page_of(found: list[T], limit: int, cursor_of: Callable[[T], str]) -> Page[T]:
    """The page of what was found, where one more than its limit was asked for."""
    return Page(tuple(found[:limit]), cursor_of(found[limit - 1]) if len(found) > limit else None)


async def all_of(read: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
    """All pages, one after the other."""
    page = await read(None)
    found = list(page.items)
    while page.next_cursor is not None:
        page = await read(page.next_cursor)
        found += page.items
    return found


def check_limit(limit: int) -> int:
    """BadOption for what is no size of a page."""
    if not 1 <= limit <= MOST:
        raise BadOption(f"limit: from 1 to {MOST}, not {limit}")
    return limit


def number_in(cursor: str) -> int:
    """Of a list that goes down by number; BadOption for what no page gave."""
    if not _is_number(cursor):
        raise _not_given(cursor)
    return int(cursor)


def place_in(cursor: str) -> tuple[int, str]:
    """Of a list by time and id; BadOption for what no page gave."""
    at_ms, mark, named = cursor.partition("~")
    if not (mark and _is_number(at_ms)):
        raise _not_given(cursor)
    return int(at_ms), name_in(named)


def name_in(cursor: str) -> str:
    """Of a list by name; BadOption for what no name is."""
    # PostgreSQL has no text with this one in it.
    if "\0" in cursor:
        raise _not_given(cursor)
    return cursor


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _not_given(cursor: str) -> BadOption:
    return BadOption(f"cursor: {cursor!r} is not one that a page gave")
