"""A process that feeds the read model until killed: python -m tests.records.feeding <records> <store> [field …]."""

import asyncio
import sys

from bullpen.records import turn_lease
from bullpen.records.records import Records
from bullpen.settings import store_from

HOLD_MS = 300
"""The next one takes over that soon after a death, where ten seconds would make a long test."""


async def main(address: str, place: str, *fields: str) -> None:
    turn_lease.HOLD_MS = HOLD_MS
    store = store_from(place)
    await store.open()
    async with await Records.open(address) as records:
        print("feeding", flush=True)
        await records.feeder(store, fields=fields).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
