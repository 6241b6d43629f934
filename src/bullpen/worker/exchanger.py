"""The trips to the store: verdicts out, jobs in, on the same trip.

    handler ends ──▶ verdict ──┐
                               ├──▶ lane: one exchange ──▶ jobs ──▶ handlers
    slot is free ──▶ want ─────┘

As many lanes as the store likes to have exchanges under way. While a lane travels, verdicts
gather for the next; when none travels, a verdict leaves in the next turn of the loop, so none
waits for company. Each asks for its share of the slots, so that jobs run while others travel.
When the queues gave less than was asked for, one watcher waits for work on behalf of all of them,
and brings what comes.
"""

import asyncio
import contextlib
import itertools
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from bullpen.errors import StoreCorrupt, StoreError, StoreTooNew
from bullpen.job.record import ClaimedJob, JobRef
from bullpen.job.verdicts import Settlement, Verdict
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import Exchanged, SettleOutcome
from bullpen.stores.workplace import Workplace
from bullpen.worker.appetite import NOTHING, Appetite, Wants
from bullpen.worker.options import WorkerOptions
from bullpen.worker.running import LeaseBook

logger = logging.getLogger("bullpen.worker")

_SETTLED = SettleOutcome.SETTLED  # looked up once, not for each job

_WATCH_MS = 5_000
"""A worker looks for work that often though nobody woke it."""
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0


class Exchanger:
    def __init__(
        self,
        store: Workplace,
        appetite: Appetite,
        worker: str,
        options: WorkerOptions,
        book: LeaseBook,
        start: Callable[[Sequence[ClaimedJob]], None],
        on_failed: Callable[[JobRef], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._lease_ms = options.lease_ms
        # So that a claim at its very end still has most of its lease when it is late.
        self._watch_ms = min(_WATCH_MS, options.lease_ms // 3)
        self._book = book
        self._unanswered = book.unanswered
        self._observers = options.observers
        self._start = start
        self._on_failed = on_failed
        self._appetite = appetite
        self._verdicts: list[Settlement] = []
        self._requests = (f"{worker}-{secrets.token_hex(4)}-{n}" for n in itertools.count(1))
        self._fetching = True
        self._closing = False
        self._hungry = True
        """Whether the queues may have more than they gave last time, and nobody has left to see."""
        self._resting = 0
        """Lanes that have nothing to carry."""
        self._share = appetite.share
        self._attention = asyncio.Event()
        self._watch = asyncio.Event()
        self._patience: asyncio.Timeout | None = None
        """Of the watcher, while it waits for work."""
        self._watched: AbstractSet[str] = frozenset()
        """The queues of its last watch."""

    # ── said by the worker ───────────────────────────────────────────────────────────────

    def finish(self, claimed: ClaimedJob, verdict: Verdict | None) -> None:
        """Its slot is free again; settle it on the next trip, unless another answers for it."""
        self._appetite.free_slot(claimed.lease.ref.queue)
        if verdict is not None:
            self._verdicts.append(Settlement(claimed.lease, verdict))
        self._attention.set()

    def send(self, claimed: ClaimedJob, verdict: Verdict) -> None:
        """Settle on the next trip, while its slot stays taken."""
        self._verdicts.append(Settlement(claimed.lease, verdict))
        self._attention.set()

    def stop_fetching(self) -> None:
        self._fetching = False
        self._end_watch()
        self._attention.set()

    def resume_fetching(self) -> None:
        self._fetching = True
        self._ask_for_more()

    def close(self) -> None:
        """End `run` once every verdict is delivered."""
        self.stop_fetching()
        self._closing = True

    # ── travelling ───────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            watcher = tasks.create_task(self._watch_for_work(), name="watcher")
            async with asyncio.TaskGroup() as lanes:
                for n in range(self._store.facts.exchanges_in_flight):
                    lanes.create_task(self._lane(), name=f"lane {n}")
            watcher.cancel()

    async def _lane(self) -> None:
        while await self._something_to_carry():
            settlements = self._take_verdicts()
            wants = self._wants()
            self._appetite.set_aside(wants)
            if wants:
                # Until this trip tells, a second one without verdicts would mostly come back empty.
                self._hungry = False
            request = next(self._requests)
            answer = await self._exchange(settlements, wants, request)
            self._strike_settled(settlements, answer)
            if self._take_in(wants, answer, await self._unanswered.held(self._store, request, answer.claimed.jobs)):
                self._ask_for_more()
            else:
                self._watch_also(wants.queues)

    async def _something_to_carry(self) -> bool:
        """Wait for verdicts or hunger; False when all is done."""
        while not self._verdicts and not (self._hungry and self._wants()):
            if self._closing:
                self._attention.set()  # the other lanes are to see it too
                return False
            self._attention.clear()
            self._resting += 1
            try:
                await self._until_attention()
            finally:
                self._resting -= 1
        return True

    async def _until_attention(self) -> None:
        """Wait for something to happen, or for the limiter to let more start."""
        closed_for_s = self._appetite.closed_for_s()
        if closed_for_s is None:
            await self._attention.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(closed_for_s):
                await self._attention.wait()

    def _take_verdicts(self) -> list[Settlement]:
        """All of them, but no more than its share while another lane is free to carry the rest."""
        most = self._share if self._resting else len(self._verdicts)
        taken, self._verdicts = self._verdicts[:most], self._verdicts[most:]
        return taken

    def _wants(self) -> Wants:
        return self._appetite.wants() if self._fetching else NOTHING

    async def _exchange(self, settlements: list[Settlement], wants: Wants, request: str) -> Exchanged:
        """Go until there is an answer: the same request again cannot take effect twice."""
        pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._unanswered.ask(request)
        while True:
            try:
                return await self._store.exchange(
                    settlements,
                    wants.queues,
                    worker=self._worker,
                    lease_ms=self._lease_ms,
                    request=request,
                    at_most=wants.at_most,
                )
            except (StoreTooNew, StoreCorrupt):
                raise  # asking again cannot help
            except StoreError as error:
                logger.warning("the store did not answer, trying again: %s", error)
                await asyncio.sleep(pauses.next_s())

    def _strike_settled(self, settlements: list[Settlement], answer: Exchanged) -> None:
        for settlement, outcome in zip(settlements, answer.settled, strict=True):
            if self._observers:
                self._observe(settlement, outcome)
            self._book.strike(settlement.lease.token)
            if outcome is not _SETTLED:
                _warn(settlement, outcome)

    def _observe(self, settlement: Settlement, outcome: SettleOutcome) -> None:
        if outcome == SettleOutcome.LEASE_LOST:
            self._observers.lease_lost(settlement.lease.ref)
        elif (run := self._book.find(settlement.lease.token)) is not None:
            self._observers.settled(run.job, settlement.verdict)

    def _take_in(self, wants: Wants, answer: Exchanged, held: Sequence[ClaimedJob]) -> bool:
        """Start what is held of it; whether there may be more."""
        got = dict.fromkeys(wants.queues, 0)
        for claimed in held:
            got[claimed.lease.ref.queue] += 1
        may_be_more = self._appetite.take_in(wants, got)
        self._start(held)
        for ref in answer.failed:
            self._on_failed(ref)
        return may_be_more

    def _ask_for_more(self) -> None:
        self._hungry = True
        self._attention.set()

    # ── watching ─────────────────────────────────────────────────────────────────────────

    async def _watch_for_work(self) -> None:
        pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while True:
            await self._watch.wait()
            self._watch.clear()
            wants = self._wants()
            self._appetite.set_aside(wants)
            # Only queues with a free slot: jobs that cannot start here would end each watch at once.
            self._watched = wants.queues.keys()
            request = next(self._requests)
            came = await self._work_that_comes(wants, request, pauses)
            answer = came or Exchanged()
            may_be_more = self._take_in(
                wants, answer, await self._unanswered.held(self._store, request, answer.claimed.jobs)
            )
            if came is None:
                continue  # whoever ended the watch says what is next
            if may_be_more or not came.claimed.jobs:
                self._ask_for_more()
            else:
                self._watch.set()

    async def _work_that_comes(self, wants: Wants, request: str, pauses: Pauses) -> Exchanged | None:
        """What came within a while; None if the watch was ended."""
        if not wants:
            return Exchanged()
        self._unanswered.ask(request, within_ms=self._watch_ms)
        try:
            came = await self._wait_and_claim(wants, request)
        except (StoreTooNew, StoreCorrupt):
            raise
        except StoreError as error:
            logger.warning("cannot watch for work: %s", error)
            await asyncio.sleep(pauses.next_s())
            # It may have taken jobs all the same: a trip under the same request tells.
            return await self._exchange([], wants, request)
        pauses.begin_anew()
        return came

    async def _wait_and_claim(self, wants: Wants, request: str) -> Exchanged | None:
        try:
            async with asyncio.timeout(None) as self._patience:
                return await self._store.wait_and_claim(
                    wants.queues,
                    worker=self._worker,
                    lease_ms=self._lease_ms,
                    request=request,
                    timeout_ms=self._watch_ms,
                    at_most=wants.at_most,
                )
        except TimeoutError:
            return None
        finally:
            self._patience = None

    def _watch_also(self, queues: Iterable[str]) -> None:
        """These gave less than was asked of them: what comes to them is to be heard of."""
        self._watch.set()
        if not self._watched >= set(queues):
            self._end_watch()

    def _end_watch(self) -> None:
        patience, self._patience = self._patience, None
        if patience is not None:
            patience.reschedule(0)  # a time that has passed: it gives up at once


def _warn(settlement: Settlement, outcome: SettleOutcome) -> None:
    ref = settlement.lease.ref
    if outcome is SettleOutcome.LEASE_LOST:
        # Its new holder answers for it; what our handler did was in vain.
        logger.warning("job %s was lost to another worker; its outcome is dropped", ref)
    else:
        logger.warning("job %s has children that are not done: it waits for them and runs again", ref)
