"""Taking jobs to another store."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from bullpen.job.state import State
from bullpen.stores.moving import NO_SIGNALS, Cargo, MemoryPage, Move, SavedJob


class Moving(Protocol):
    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        """The first jobs of that state in its order, with all that belongs to them. Active: WrongState.

        At least one if there is any; fewer than asked for if their steps are longer than PAGE_STEPS_BYTES.
        What this store knows of a job and cannot put into words is MoveRefused.
        """

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        """What the queue knows beside its jobs, about so many at a time. May be slow on a large server."""

    async def depart(self, queue: str, ids: Sequence[str], *, signals: Mapping[str, int] = NO_SIGNALS) -> Sequence[str]:
        """Let go of jobs that are on another store by now; all of these that are not here any more.

        Active ones stay, and so do those that have more signals in their mailboxes than `signals` says
        by their ids, or any if it says nothing: they came after the job was exported. Explicit ids stay
        remembered, and so do subjects with a time of their own. Nothing is added that was kept for when
        they end: it went with them.
        """

    async def begin_move(self, queue: str, move: Move) -> None:
        """Make the queue ready to take in another's jobs: paused or not as it was there, its ids out of reach.

        The same origin again goes on where it was, also though the queue has jobs by now. Any
        other queue with jobs in it is MoveRefused.
        """

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        """Take in all of these or none; how many of the jobs were new here.

        Each goes to the end of where it stood, its ids, counts, times, words, steps and signals as
        they were; a parked one is parked. A job that came with this move before is passed over,
        whatever became of it here, but signals that did not come before are put into its mailbox and
        wake it if it waits for them. One whose explicit id is taken or remembered is passed over too.
        MoveRefused if another run began, or if the store's own id belongs to another job here.
        """
