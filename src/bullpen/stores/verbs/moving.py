"""Taking jobs to another store."""

from collections.abc import Sequence
from typing import Protocol

from bullpen.job.state import State
from bullpen.stores.moving import Cargo, MemoryPage, Move, SavedJob


class Moving(Protocol):
    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        """The first jobs of that state in its order, with all that belongs to them. Active: WrongState.

        What this store knows of a job and cannot put into words is MoveRefused.
        """

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        """What the queue knows beside its jobs, about so many at a time. May be slow on a large server."""

    async def depart(self, queue: str, ids: Sequence[str]) -> Sequence[str]:
        """Let go of jobs that are on another store by now; all of these that are not here any more.

        Active ones stay. Explicit ids stay remembered, and so do subjects with a time of their own.
        Nothing is added that was kept for when they end: it went with them.
        """

    async def begin_move(self, queue: str, move: Move) -> None:
        """Make the queue ready to take in another's jobs: paused or not as it was there, its ids out of reach.

        The same origin again goes on where it was, also though the queue has jobs by now. Any
        other queue with jobs in it is MoveRefused.
        """

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        """Take in all of these or none; how many of the jobs were new here.

        Each goes to the end of where it stood, its ids, counts, times and words as they were. A
        job that came with this move before is passed over, whatever became of it here, and so is
        one whose explicit id is taken or remembered. MoveRefused if another run began, or if the
        store's own id belongs to another job here.
        """
