"""Cursors of lists that go down by number."""

from bullpen.errors import BadOption


def number_in(cursor: str) -> int:
    """BadOption for what no page gave."""
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return int(cursor)
