"""A journal in memory: the smallest home there is, for tests of handlers."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from bullpen.errors import LeaseLost, WrongState
from bullpen.job.entries import EntryState, JournalEntry, JournalPage


class MemoryJournal:
    def __init__(self) -> None:
        self._entries: defaultdict[str, dict[int, JournalEntry]] = defaultdict(dict)
        self._epochs: defaultdict[str, int] = defaultdict(int)
        self._signals: defaultdict[str, list[tuple[str, bytes]]] = defaultdict(list)

    def begin(self, run: str) -> int:
        """A new activation of the run; its epoch."""
        self._epochs[run] += 1
        return self._epochs[run]

    def signal(self, run: str, name: str, payload: bytes) -> None:
        self._signals[run].append((name, payload))

    async def append(self, run: str, entries: Sequence[JournalEntry], *, epoch: int) -> Sequence[JournalEntry]:
        self._check(run, epoch)
        return [self._append(run, entry) for entry in entries]

    async def receive(self, run: str, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        self._check(run, epoch)
        if self._is_done(run, entry.place):
            return self._entries[run][entry.place]
        for signal in self._signals[run]:
            if signal[0] == entry.name:
                self._signals[run].remove(signal)
                return self._append(run, msgspec.structs.replace(entry, value=signal[1]))
        return None

    async def read(self, run: str, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        known = self._entries[run]
        found = [known[place] for place in sorted(known) if start <= place < start + limit]
        return JournalPage(tuple(found), start + limit if max(known, default=-1) >= start + limit else None)

    async def fork(self, run: str, at: int, new_run: str) -> int:
        if self._entries[new_run]:
            raise WrongState(f"run {new_run!r} has a journal of its own")
        self._entries[new_run] = {place: entry for place, entry in self._entries[run].items() if place < at}
        return len(self._entries[new_run])

    async def forget(self, run: str) -> None:
        self._entries.pop(run, None)
        self._signals.pop(run, None)

    def _check(self, run: str, epoch: int) -> None:
        if epoch != self._epochs[run]:
            raise LeaseLost(f"run {run!r} is no longer in its activation {epoch}")

    def _append(self, run: str, entry: JournalEntry) -> JournalEntry:
        if not self._is_done(run, entry.place):
            self._entries[run][entry.place] = entry
        return self._entries[run][entry.place]

    def _is_done(self, run: str, place: int) -> bool:
        known = self._entries[run].get(place)
        return known is not None and known.state == EntryState.DONE
