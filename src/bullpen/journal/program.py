"""One activation of a run: it goes through the places of its journal, and then on."""

import asyncio
import dataclasses
import functools
import random
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import msgspec

from bullpen.clock import Clock
from bullpen.errors import JobMissing, JournalFull, LeaseLost, StoreFull, StoreUnavailable
from bullpen.job.entries import EntryKind, JournalEntry
from bullpen.job.record import Failure
from bullpen.job.verdicts import Parked
from bullpen.journal.base import Journal
from bullpen.journal.suspension import Suspension, merged
from bullpen.observing import Observers
from bullpen.queue.payload import MAX_PAYLOAD_BYTES, Codec, from_bytes, to_bytes

T = TypeVar("T")

_PAGE = 1_000
_HEAD_BYTES = 200
"""About what an entry takes beside its value."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalLimits:
    entries: int = 10_000
    bytes: int = 16_777_216
    entry_bytes: int = MAX_PAYLOAD_BYTES


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a program goes by."""

    clock: Clock
    describe: Callable[[BaseException], Failure]
    """An error as it is kept; one of kind `unrecoverable` is not tried again."""
    codec: Codec | None = None
    limits: JournalLimits = JournalLimits()
    in_place_ms: int = 5_000
    """A step that is tried again sooner keeps its slot; for longer, the job parks."""
    observers: Observers = dataclasses.field(default_factory=Observers)
    unfit_ms: int = 60_000
    """How long a job whose program does not fit stays parked before it is offered again."""


class Program:
    def __init__(self, journal: Journal, run: str, key: str, epoch: int, terms: Terms) -> None:
        self.terms = terms
        self.suspended: list[Parked] = []
        """Why it left, if it did: also where its code caught what is not for it."""
        self.next_place = 0
        self._journal = journal
        self._run = run
        self._key = key
        self._epoch = epoch
        self._entries: dict[int, JournalEntry] = {}
        self._turns: set[int] = set()
        self._bytes = 0
        self._latest_ms = 0
        self._reading: asyncio.Task[None] | None = None

    def now_ms(self) -> int:
        """By the store's clock, and never back: what follows another entry has no earlier time."""
        self._latest_ms = max(self._latest_ms, self.terms.clock.now_ms())
        return self._latest_ms

    def take_place(self) -> int:
        self.next_place += 1
        return self.next_place - 1

    def key_of(self, place: int) -> str:
        """The same in every activation, and no other step's: also not of a later job under the same id."""
        return f"{self._key}/{place}"

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def find(self, place: int, name: str, kind: EntryKind) -> JournalEntry | None:
        """What is on record there; the job parks if that is another step than the one asked for."""
        await self._read_once()
        entry = self._entries.get(place)
        if entry is not None and (entry.name, entry.kind) != (name, kind):
            self.does_not_fit(
                f"step {place} was the {entry.kind} {entry.name!r}, and the program asks for the {kind} {name!r}"
            )
        return entry

    def describe(self, error: BaseException) -> Failure:
        """As it is put on record: without the stack, which is the job's to keep."""
        return msgspec.structs.replace(self.terms.describe(error), stack="")

    async def find_turn(self, start: int) -> JournalEntry | None:
        """Where the saga that began at this place turned back."""
        await self._read_once()
        place = min((place for place in self._turns if place >= start), default=None)
        return None if place is None else self._entries[place]

    def has_followers(self, entry: JournalEntry) -> bool:
        """Whether anything was begun after this had ended: then its outcome stands."""
        return any(other.place > entry.place and other.started_ms >= entry.ended_ms for other in self._entries.values())

    def check_end(self) -> None:
        """The program has ended: if more was recorded than it asked for, it does not fit."""
        beyond = min((place for place in self._entries if place >= self.next_place), default=None)
        if beyond is not None:
            entry = self._entries[beyond]
            self.does_not_fit(f"step {beyond} was the {entry.kind} {entry.name!r}, and the program ends before it")

    async def _read_once(self) -> None:
        if self._reading is None:
            # Owned by this program, and awaited at once by whoever asks first; the others wait for the same.
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        start: int | None = 0
        while start is not None:
            page = await self._persist(functools.partial(self._journal.read, self._run, start=start, limit=_PAGE))
            for entry in page.entries:
                self._keep(entry)
            start = page.next_place

    # ── recording ────────────────────────────────────────────────────────────────────────

    async def record(self, entry: JournalEntry) -> JournalEntry:
        """Put it on record before going on; what stands there."""
        entry = msgspec.structs.replace(entry, epoch=self._epoch)
        self._check_limits(entry)
        (standing,) = await self._persist(lambda: self._journal.append(self._run, [entry], epoch=self._epoch))
        return self._keep(standing)

    async def receive(self, entry: JournalEntry) -> JournalEntry | None:
        entry = msgspec.structs.replace(entry, epoch=self._epoch)
        self._check_limits(entry)
        standing = await self._persist(lambda: self._journal.receive(self._run, entry, epoch=self._epoch))
        return None if standing is None else self._keep(standing)

    def encode(self, value: Any, what: str) -> bytes:
        return to_bytes(value, what=what, codec=self.terms.codec, limit=self.terms.limits.entry_bytes)

    def decode(self, entry: JournalEntry) -> Any:
        return from_bytes(entry.value, what=f"{entry.kind} {entry.name!r}", codec=self.terms.codec)

    def _keep(self, entry: JournalEntry) -> JournalEntry:
        replaced = self._entries.get(entry.place)
        self._bytes += _size(entry) - (0 if replaced is None else _size(replaced))
        self._entries[entry.place] = entry
        if entry.kind == EntryKind.TURN:
            self._turns.add(entry.place)
        self._latest_ms = max(self._latest_ms, entry.started_ms, entry.ended_ms)
        return entry

    def _check_limits(self, entry: JournalEntry) -> None:
        limits = self.terms.limits
        if entry.kind in (EntryKind.TURN, EntryKind.UNDO):
            return  # a saga that has no room to go on must have room to go back
        if entry.place >= limits.entries:
            raise JournalFull(f"{entry.name!r} would be step {entry.place + 1:,}; a job may have {limits.entries:,}")
        if self._bytes + _size(entry) > limits.bytes:
            raise JournalFull(
                f"with {entry.name!r} the journal would be over {limits.bytes:,} bytes: keep results elsewhere,"
                " and their ids here"
            )

    async def _persist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer: each of these calls may be made again."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await call()
            except (LeaseLost, JobMissing) as lost:
                raise Suspension(None) from lost
            except (StoreUnavailable, StoreFull):
                await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - to spread, not to hide
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    # ── leaving ──────────────────────────────────────────────────────────────────────────

    def suspend(self, verdict: Parked) -> None:
        """Leave the handler until then. In a test of a handler it may return, once the time has passed."""
        self.suspended.append(verdict)
        raise Suspension(verdict)

    def does_not_fit(self, why: str) -> NoReturn:
        note = f"the program no longer fits its journal: {why}"
        verdict = Parked(self.now_ms() + self.terms.unfit_ms, (), note)
        self.suspended.append(verdict)
        raise Suspension(verdict)

    def verdict_if_suspended(self) -> Parked | None:
        return merged(self.suspended) if self.suspended else None


def _size(entry: JournalEntry) -> int:
    return _HEAD_BYTES + len(entry.value or b"")
