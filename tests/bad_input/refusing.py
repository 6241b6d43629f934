"""How a refusal is looked at."""

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bullpen import FROM_START, BullpenError, Queue, SqliteStore

Anything = Any
SURROGATE = "\ud800"
NAN, ENDLESS, AGES = float("nan"), float("inf"), 10**400


def short(value: object) -> str:
    """A test's name, for values that are too long for one."""
    return re.sub(r" at 0x\w+", "", ascii(value))[:30]


async def all_of(store: SqliteStore) -> object:
    events = await store.events("work", after=FROM_START, limit=1_000, timeout_ms=0)
    return await store.queues(), await store.counts("work"), await Queue(store, "work").job("kept").record(), events


@contextlib.asynccontextmanager
async def refused(store: SqliteStore, error: type[BullpenError], code: str, *words: str) -> AsyncIterator[None]:
    """The block raises this error, which has these words, and leaves the store as it was."""
    before = await all_of(store)
    with pytest.raises(error) as caught:
        yield
    check_error(caught.value, error, code, *words)
    assert await all_of(store) == before


def check_error(found: BullpenError, error: type[BullpenError], code: str, *words: str) -> None:
    assert type(found) is error
    assert found.code == code
    for word in words:
        assert word in str(found)
