"""The contract of a journal: the record of a run's durable steps, wherever it is kept.

A **run** is one going-through of a program, of any number of attempts; its name is a text. A **place**
is the order in which the program asked for a step, from 0. An **epoch** grows with each activation
of the run: who was overtaken by a later one records nothing any more.

`bullpen.testing.journals` has a test for each promise, and runs on any home.
"""

from collections.abc import Sequence
from typing import Protocol

from bullpen.job.entries import JournalEntry, JournalPage


class Journal(Protocol):
    async def append(self, run: str, entries: Sequence[JournalEntry], *, epoch: int) -> Sequence[JournalEntry]:
        """Record these, all or none; each as it stands afterwards.

        What is done stays as it is, so a lost answer is asked for again; what is open or failed
        gives way. LeaseLost if a later activation has begun, or the run has ended.
        """

    async def receive(self, run: str, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        """Record the oldest signal of the entry's name as its value; None if there is none. Each is taken once."""

    async def read(self, run: str, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        """What was recorded from a place on, of that many places at most."""

    async def fork(self, run: str, at: int, new_run: str) -> int:
        """Copy what was recorded before a place to a run that has recorded nothing; how many entries."""

    async def forget(self, run: str) -> None:
        """Drop all that the run recorded."""
