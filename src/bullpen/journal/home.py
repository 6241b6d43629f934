"""The journal of plain jobs: it lives in the queue's store, beside its job, and goes with it."""

from collections.abc import Sequence

from bullpen.errors import BadOption
from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.record import JobRef
from bullpen.stores.workplace import Workplace


class StoreJournal:
    """Runs are jobs; a run's name is its job's queue and id, as `str(ref)` writes them."""

    def __init__(self, store: Workplace) -> None:
        self._store = store

    async def append(self, run: str, entries: Sequence[JournalEntry], *, epoch: int) -> Sequence[JournalEntry]:
        return await self._store.append_journal(_ref(run), entries, epoch=epoch)

    async def receive(self, run: str, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        return await self._store.receive(_ref(run), entry, epoch=epoch)

    async def read(self, run: str, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        return await self._store.read_journal(_ref(run), start=start, limit=limit)

    async def fork(self, run: str, at: int, new_run: str) -> int:
        return await self._store.fork_journal(_ref(run), at, _ref(new_run))

    async def forget(self, run: str) -> None:
        await self._store.forget_journal(_ref(run))


def _ref(run: str) -> JobRef:
    # A queue's name has no slash; an id may have any number of them.
    queue, slash, job_id = run.partition("/")
    if not slash:
        raise BadOption(f"run: {run!r} is no job's: its queue, a slash, its id")
    return JobRef(queue, job_id)
