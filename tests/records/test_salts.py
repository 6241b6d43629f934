"""Secrets that the records make for themselves."""

import asyncio

from bullpen.records.records import Records


async def test_whoever_is_first_makes_a_salt_and_all_have_the_same(records: Records, address: str) -> None:
    """Servers that start at once on new records must read each other's cursors."""
    async with await Records.open(address) as other:
        found = await asyncio.gather(*(one.salts.get("cursors") for one in (records, other) * 5))
        assert len(set(found)) == 1
        assert await other.salts.get("cursors") == found[0]
        assert len(found[0]) == 32
        assert await other.salts.get("else") != found[0]
