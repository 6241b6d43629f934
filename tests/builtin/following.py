"""A process that makes deliveries of events until it is killed: python -m tests.builtin.following <records> <store>."""

import asyncio
import sys

from bullpen.builtin.follower import Follower
from bullpen.records import turn_lease
from bullpen.records.records import Records
from bullpen.settings import store_from

HOLD_MS = 300
"""The next one takes over that soon after a death."""


async def main(address: str, place: str) -> None:
    turn_lease.HOLD_MS = HOLD_MS
    store = store_from(place)
    await store.open()
    async with await Records.open(address) as records:
        print("following", flush=True)
        await Follower(records, store, find_every=0.2).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
