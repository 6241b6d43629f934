"""What the conformance kit asks of whoever brings a store.

Time is an argument for some state and a server's expiry for other, so the kit cannot move it
by itself; nor can it kill a process. A harness can.
"""

from typing import Protocol

from bullpen.clock import Clock
from bullpen.stores.base import Store


class Harness(Protocol):
    """One place where jobs are kept, empty at first, and its own for each test."""

    @property
    def clock(self) -> Clock:
        """The time that all stores of this harness go by."""

    async def open(self) -> Store:
        """Another opened store on the same place, as another process would have."""

    async def advance(self, ms: int) -> None:
        """Let that much time pass for everything in the place."""

    async def crash(self, store: Store) -> None:
        """End this store as if its process had been killed: nothing is tidied up."""

    async def check(self) -> None:
        """Assert whatever else must hold in the place: its integrity, its counters."""
