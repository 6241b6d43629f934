"""What is done to one job, or to a whole queue."""

from collections.abc import Sequence
from typing import Protocol

from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.stores.answers import Cancellation


class Steering(Protocol):
    # ── steering one job ─────────────────────────────────────────────────────────────────

    async def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        """End an unstarted job as cancelled, or ask its worker to stop it. Finished: WrongState.

        A running job that was asked to stop completes or fails by its own verdict; it never runs
        again: a retry, a release or a rescue ends it as cancelled. The children of one that waits for
        them go on.
        """

    async def retry(self, ref: JobRef) -> None:
        """Put a finished job back to run with fresh attempts; noted in its log. Else WrongState.

        It is pending again for its parent; and it waits first if it has pending children itself.
        """

    async def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        """Retry up to that many of the queue's completed or failed jobs, oldest first."""

    async def promote(self, ref: JobRef) -> None:
        """Make a delayed job runnable now. Else WrongState."""

    async def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        """Make a delayed job due that long from now. Else WrongState."""

    async def change_priority(self, ref: JobRef, priority: int) -> None:
        """Give an unfinished job another priority, at the end of that line; a finished one is WrongState.

        A delayed job keeps its place among those that are due at the same time.
        """

    async def remove(self, ref: JobRef) -> None:
        """Forget a job that is not active, and its id with it; and all its children with theirs.

        WrongState if it or one of those is active. A parent does not wait for a child that is removed,
        in whatever way; a result that it has already stays. No other verb removes children with a job.
        """

    async def update_data(self, ref: JobRef, data: bytes) -> None:
        """Replace the data; a running attempt keeps what it has."""

    async def set_progress(self, ref: JobRef, progress: bytes) -> None: ...

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        """Append to the job's log, dropping the oldest lines over its limit; the number kept."""

    # ── steering a queue: all but `pause` refuse one that is not there (QueueMissing) ───────

    async def pause(self, queue: str) -> None:
        """Give out no more jobs of the queue; running ones go on, adds are taken."""

    async def resume(self, queue: str) -> None: ...

    async def drain(self, queue: str, *, delayed: bool) -> int:
        """Remove all runnable jobs, and the delayed ones if asked; explicit ids stay remembered."""

    async def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        """Remove up to that many jobs that entered the state that long ago. Active: WrongState."""

    async def obliterate(self, queue: str, *, force: bool) -> None:
        """Remove the queue with everything in it. Active jobs: WrongState unless forced."""
