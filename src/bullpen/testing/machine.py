"""A Hypothesis state machine that puts the same questions to a store and to the model.

    TestMyStore = store_machine(my_place).TestCase
    TestMyStore.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)

Every rule asks both and compares the answers; after every step all that the store shows of
its jobs must be what the model has: every job is in exactly one place.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bullpen.errors import JobError, JobMissing
from bullpen.job.events import Event, EventKind
from bullpen.job.names import is_generated_id
from bullpen.job.record import CrashKind, CrashLimits, FailureKind, JobRecord, JobRef, Lease
from bullpen.job.spec import Dedup, JobSpec, Keep, NewJob
from bullpen.job.state import READY, State
from bullpen.job.verdicts import Completed, Settlement, Verdict
from bullpen.stores.base import REQUEST_MEMORY_MS, Added, AddOutcome, Claimed, Counts, Exchanged
from bullpen.testing import drawing
from bullpen.testing.harness import Harness
from bullpen.testing.model import Model, ModelJob

T = TypeVar("T")
Place = Callable[[], contextlib.AbstractContextManager[Harness]]
"""Makes a new, empty place where jobs are kept, and does away with it."""

_PAGE = 6


@dataclasses.dataclass
class Asked:
    """A request and its first answer."""

    request: str
    again: Callable[[], Coroutine[Any, Any, object]]
    answer: Sequence[Added] | Exchanged
    at_ms: int


@dataclasses.dataclass
class Sight:
    """All that the store shows, after a step; no page of a state in which it counts no job."""

    jobs: dict[tuple[str, State], list[JobRecord]] = dataclasses.field(default_factory=dict)
    counts: dict[str, Counts] = dataclasses.field(default_factory=dict)
    oldest_ms: dict[str, int | None] = dataclasses.field(default_factory=dict)


class StoreMachine(RuleBasedStateMachine):
    place: Place

    def __init__(self) -> None:
        super().__init__()
        self._exit = contextlib.ExitStack()
        self._harness = self._exit.enter_context(self.place())
        self._loop = self._exit.enter_context(asyncio.Runner()).get_loop()
        self._store = self._run(self._harness.open())
        facts = self._store.facts
        self._model = Model(self._harness.clock, detects_dead_processes=facts.detects_dead_processes)
        self._dedup = Dedup("")
        self._numbers = 0
        self._asked: list[Asked] = []
        self._leases: list[Lease] = []
        self._sight = Sight()
        self._compared = False
        self._cursors = {queue: self._end_of_log(queue) for queue in ("a", "b")}
        self._starts = dict(self._cursors)
        self._told: dict[str, list[Event]] = {"a": [], "b": []}

    def teardown(self) -> None:
        with self._exit:
            try:
                if self._compared:  # else a step has failed, and says more than what follows from it
                    self._check_pages()
                    self._check_log_from_its_start()
            finally:
                self._run(self._store.close())
            self._run(self._harness.check())

    # ── producing and working ────────────────────────────────────────────────────────────

    @initialize(batch=drawing.batches, dedup=drawing.deduplications)
    def start(self, batch: list[drawing.Draft], dedup: Dedup) -> None:
        """One kind of deduplication in a walk: so its subjects meet."""
        self._dedup = dedup
        self.add(batch, lost=False)

    @rule(batch=drawing.batches, lost=drawing.seldom)
    def add(self, batch: list[drawing.Draft], lost: bool) -> None:
        jobs = [self._named(draft) for draft in batch]
        request = self._fresh("request")
        self._expect_added(jobs, self._ask(request, lambda: self._store.add(jobs, request=request), lost=lost))

    @rule(batch=drawing.batches)
    def crash_while_adding(self, batch: list[drawing.Draft]) -> None:
        """Nobody knows whether it took effect; asking again makes it so, once."""
        jobs = [self._named(draft) for draft in batch]
        request = self._fresh("request")
        self._run(_lose_answer(lambda: self._store.add(jobs, request=request)))
        self._crash()
        self._expect_added(jobs, self._ask(request, lambda: self._store.add(jobs, request=request)))

    @precondition(lambda self: self._model.jobs)
    @rule(wants=drawing.wants, worker=drawing.workers, lease_ms=drawing.leases_ms, lost=drawing.seldom)
    def claim(self, wants: Mapping[str, int], worker: str, lease_ms: int, lost: bool) -> None:
        request = self._fresh("request")

        async def claim() -> Exchanged:
            return Exchanged((), await self._store.claim(wants, worker=worker, lease_ms=lease_ms, request=request))

        self._tick()
        self._expect_claimed(self._ask(request, claim, lost=lost).claimed, wants, worker, lease_ms)

    @precondition(lambda self: self._leases)
    @rule(
        data=st.data(),
        verdicts=st.lists(drawing.verdicts, min_size=1, max_size=3),
        then=drawing.few_drafts,
        lost=drawing.seldom,
    )
    def settle(self, data: st.DataObject, verdicts: list[Verdict], then: list[drawing.Draft], lost: bool) -> None:
        settlements = self._draw_settlements(data, verdicts, then)
        request = self._fresh("request")

        async def settle() -> Exchanged:
            return Exchanged(tuple(await self._store.settle(settlements, request=request)))

        self._tick()
        answer = self._ask(request, settle, lost=lost)
        assert list(answer.settled) == self._model.settle(settlements)

    @precondition(lambda self: self._model.jobs)
    @rule(
        data=st.data(),
        verdicts=st.lists(drawing.verdicts, max_size=3),
        then=drawing.few_drafts,
        wants=drawing.wants,
        worker=drawing.workers,
        lost=drawing.seldom,
    )
    def exchange(
        self,
        data: st.DataObject,
        verdicts: list[Verdict],
        then: list[drawing.Draft],
        wants: Mapping[str, int],
        worker: str,
        lost: bool,
    ) -> None:
        settlements = self._draw_settlements(data, verdicts, then)
        request = self._fresh("request")

        def exchange() -> Coroutine[Any, Any, Exchanged]:
            return self._store.exchange(settlements, wants, worker=worker, lease_ms=5_005, request=request)

        self._tick()
        answer = self._ask(request, exchange, lost=lost)
        assert list(answer.settled) == self._model.settle(settlements)
        self._expect_claimed(answer.claimed, wants, worker, 5_005)

    @precondition(lambda self: self._model.jobs)
    @rule(data=st.data(), queue=drawing.queues, verdict=drawing.verdicts, then=drawing.few_drafts)
    def run_one(self, data: st.DataObject, queue: str, verdict: Verdict, then: list[drawing.Draft]) -> None:
        """The common case: a job is claimed and settled at once."""
        known = len(self._leases)
        self.claim({queue: 1}, "worker-1", 5_005, lost=False)
        if len(self._leases) > known:
            self.both_agree()
            self.settle(data, [verdict], then, lost=False)

    @precondition(lambda self: self._remembered())
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """The first answer again; of the jobs it gave, those that are no longer held may be left out."""
        asked = data.draw(st.sampled_from(self._remembered()), "asked")
        answer = self._run(asked.again())
        self._look()
        if isinstance(asked.answer, Exchanged):
            assert isinstance(answer, Exchanged)
            assert answer.settled == asked.answer.settled
            assert answer.claimed.next_due_ms == asked.answer.claimed.next_due_ms
            first, again = _leases_of(asked.answer.claimed), _leases_of(answer.claimed)
            assert again == [lease for lease in first if lease in again]
            assert self._held(again) == self._held(first)
        else:
            assert answer == asked.answer

    @precondition(lambda self: self._leases)
    @rule(data=st.data(), lease_ms=drawing.leases_ms)
    def renew(self, data: st.DataObject, lease_ms: int) -> None:
        leases = data.draw(st.lists(st.sampled_from(self._leases), min_size=1, max_size=3), "leases")
        self._both("renew", leases, lease_ms=lease_ms)

    @precondition(lambda self: self._remembered_claims())
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        claims = self._remembered_claims()
        apt = [request for request, leases in claims.items() if self._held(leases)]
        request = data.draw(st.sampled_from([*apt * 4, *claims]), "request")
        count = self._run(self._store.abandon(request))
        self._look()
        assert count == self._model.abandon(claims[request])

    @precondition(lambda self: self._model.jobs)
    @rule(queues=st.lists(drawing.queues, min_size=1, unique=True), limits=drawing.limits)
    def rescue(self, queues: list[str], limits: CrashLimits) -> None:
        self._tick()
        rescued = self._run(self._store.rescue(queues, limits=limits))
        self._look()
        assert (set(rescued.recovered), set(rescued.failed)) == self._model.rescue(queues, limits=limits)

    @precondition(lambda self: self._leases)
    @rule(worker=drawing.workers, kind=drawing.crash_kinds, limits=drawing.limits)
    def report_crash(self, worker: str, kind: CrashKind, limits: CrashLimits) -> None:
        self._tick()
        rescued = self._run(self._store.report_crash(worker, kind, limits=limits))
        self._look()
        expected = self._model.report_crash(worker, kind, limits=limits)
        assert (set(rescued.recovered), set(rescued.failed)) == expected

    @rule(queue=drawing.queues, worker=drawing.workers)
    def look_for_work(self, queue: str, worker: str) -> None:
        may_run = self._run(self._store.wait([queue], timeout_ms=0))
        assert may_run or not self._model.is_runnable(queue), "slept through a runnable job"
        notices = self._run(self._store.notices(worker, timeout_ms=0))
        assert {(notice.lease, notice.reason) for notice in notices} == self._model.notices(worker)

    # ── steering ─────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self._model.jobs)
    @rule(data=st.data(), step=drawing.steps_of_a_job)
    def steer_a_job(self, data: st.DataObject, step: tuple[str, dict[str, Any]]) -> None:
        self._tick()
        verb, options = step
        jobs = self._model.jobs
        apt = [ref for ref, job in jobs.items() if job.state in drawing.APT.get(verb, State)]
        ref = data.draw(st.sampled_from([*apt * 4, *jobs, JobRef("a", "nobody")]), "ref")
        self._both(verb, ref, **options)

    @precondition(lambda self: self._model.jobs)
    @rule(queue=drawing.queues, step=drawing.steps_of_a_queue)
    def steer_a_queue(self, queue: str, step: tuple[str, dict[str, Any]]) -> None:
        verb, options = step
        self._both(verb, queue, **options)
        if verb == "obliterate" and queue not in self._model.queues:
            self._cursors[queue] = self._starts[queue] = self._end_of_log(queue)
            self._told[queue] = []

    # ── time, and the end of processes ───────────────────────────────────────────────────

    @rule(ms=st.sampled_from([drawing.TICK_MS, 1_000, 1_000, 6_000, 31_000, 31_000, 90_000_000]))
    def let_time_pass(self, ms: int) -> None:
        self._run(self._harness.advance(ms))
        self._look()

    @rule(killed=st.booleans())
    def end_and_start_anew(self, killed: bool) -> None:
        if killed:
            self._crash()
        else:
            self._run(self._store.close())
            self._open()
        self._look()

    def _crash(self) -> None:
        self._model.dead.add(self._model.process)
        self._run(self._harness.crash(self._store))
        self._run(self._harness.check())
        self._open()

    def _open(self) -> None:
        self._store = self._run(self._harness.open())
        self._model.process += 1

    # ── what always holds ────────────────────────────────────────────────────────────────

    @invariant()
    def both_agree(self) -> None:
        self._every_job_is_in_exactly_one_place()
        self._queues_are_as_told()
        self._the_log_tells_where_each_job_is()
        self._compared = True

    def _every_job_is_in_exactly_one_place(self) -> None:
        """Also: in the right order, with the right record."""
        for queue in self._model.queues:
            for state in State:
                found = [_comparable(record) for record in self._sight.jobs.get((queue, state), [])]
                expected = [_comparable(job.record) for job in self._model.line(queue, state)]
                if state == State.ACTIVE:  # their order is the store's own
                    found.sort(key=lambda record: record.ref)
                    expected.sort(key=lambda record: record.ref)
                assert found == expected, f"{state} in {queue}"

    def _queues_are_as_told(self) -> None:
        queues = sorted(self._model.queues)
        assert self._sight.counts == {queue: self._model.counts(queue) for queue in queues}
        assert self._sight.oldest_ms == {queue: self._model.oldest_waiting_ms(queue) for queue in queues}

    def _the_log_tells_where_each_job_is(self) -> None:
        for queue, told in self._told.items():
            last = {event.job_id: event.kind for event in told if event.kind in _STATES_OF}
            for ref, job in self._model.jobs.items():
                if ref.queue == queue:
                    assert job.state in _STATES_OF[last[ref.id]], f"{ref} is {job.state}, last told {last[ref.id]}"

    def _check_log_from_its_start(self) -> None:
        """The same in small pages; each event has a cursor of its own, from which the log goes on."""
        for queue, told in self._told.items():
            cursor, read = self._starts[queue], list[Event]()
            while page := self._run(self._read_log(queue, cursor, limit=_PAGE)):
                read += page
                cursor = page[-1].cursor
            assert read == told
            assert len({event.cursor for event in read}) == len(read)
            assert [event.at_ms for event in read] == sorted(event.at_ms for event in read)

    def _check_pages(self) -> None:
        """Backwards is the same backwards, and each job alone is the same as in its page."""
        for queue, state in [(queue, state) for queue in self._model.queues for state in State]:
            records = self._sight.jobs.get((queue, state), [])
            assert self._run(self._read_jobs(queue, state, newest_first=True)) == records[::-1]
            for record in records:
                assert self._run(self._store.job(record.ref)) == record
                lines = self._run(self._store.logs(record.ref)).total
                assert lines == self._model.jobs[record.ref].log_lines
        for ref in {lease.ref for lease in self._leases} - self._model.jobs.keys():
            assert self._run(_or_refusal(self._store.job(ref))) is JobMissing

    # ── asking ───────────────────────────────────────────────────────────────────────────

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(call)

    def _tick(self) -> None:
        """What ends or starts now does not do so in the same millisecond as what did before."""
        self._run(self._harness.advance(drawing.TICK_MS))

    def _both(self, verb: str, *arguments: object, **options: object) -> None:
        """Ask both the same: they say the same, or refuse it in the same way."""
        answer = self._run(_or_refusal(getattr(self._store, verb)(*arguments, **options)))
        self._look()
        assert answer == _do(lambda: getattr(self._model, verb)(*arguments, **options))

    def _ask(self, request: str, call: Callable[[], Coroutine[Any, Any, T]], *, lost: bool = False) -> T:
        """Ask, and keep the answer; if it is lost, ask again."""
        if lost:
            self._run(_lose_answer(call))
        answer = self._run(call())
        self._asked.append(Asked(request, call, answer, self._model.now_ms))  # type: ignore[arg-type]
        self._look()
        return answer

    def _look(self) -> None:
        """Read all that the store shows; tell the model what is the store's own choice."""
        self._compared = False
        self._sight = self._run(self._read_all())
        records = [record for page in self._sight.jobs.values() for record in page]
        self._model.seen = {record.ref: n for n, record in enumerate(records)}
        self._model.given_ids |= {record.name: record.id for record in records if is_generated_id(record.id)}

    async def _read_all(self) -> Sight:
        sight = Sight()
        for queue in await self._store.queues():
            counts = sight.counts[queue] = await self._store.counts(queue)
            sight.oldest_ms[queue] = await self._store.oldest_waiting_ms(queue)
            for state in drawing.STATES:
                if getattr(counts, state):
                    sight.jobs[queue, state] = await self._read_jobs(queue, state)
        for queue, told in self._told.items():
            told.extend(await self._read_log(queue, self._cursors[queue], limit=1_000))
            self._cursors[queue] = told[-1].cursor if told else self._cursors[queue]
        return sight

    async def _read_jobs(self, queue: str, state: State, *, newest_first: bool = False) -> list[JobRecord]:
        found: list[JobRecord] = []
        cursor = None
        while True:
            page = await self._store.jobs(queue, state, limit=_PAGE, cursor=cursor, newest_first=newest_first)
            found += page.jobs
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def _read_log(self, queue: str, after: str, *, limit: int) -> list[Event]:
        page = await self._store.events(queue, after=after, limit=limit, timeout_ms=0)
        assert not page.gap
        assert not page.events or page.cursor == page.events[-1].cursor
        return list(page.events)

    def _end_of_log(self, queue: str) -> str:
        return self._run(self._store.events(queue, after=None, limit=1, timeout_ms=0)).cursor

    # ── comparing ────────────────────────────────────────────────────────────────────────

    def _expect_added(self, jobs: Sequence[NewJob], answer: Sequence[Added]) -> None:
        for job, added in zip(jobs, answer, strict=True):
            if job.id is None and added.outcome in (AddOutcome.ADDED, AddOutcome.REPLACED):
                self._model.given_ids[job.name] = added.id
        assert list(answer) == self._model.add(jobs)

    def _expect_claimed(self, answer: Claimed, wants: Mapping[str, int], worker: str, lease_ms: int) -> None:
        jobs, next_due_ms = self._model.claim(wants, worker=worker, lease_ms=lease_ms)
        assert [_comparable(claimed.job) for claimed in answer.jobs] == [_comparable(job.record) for job in jobs]
        assert answer.next_due_ms == next_due_ms
        for job, lease in zip(jobs, _leases_of(answer), strict=True):
            assert (lease.ref, lease.epoch) == (job.ref, job.record.epoch)
            assert lease.token not in {other.token for other in self._leases}, "a token given twice"
            job.lease = lease
            self._leases.append(lease)

    def _held(self, leases: Sequence[Lease]) -> list[ModelJob]:
        return [job for lease in leases if (job := self._model.held(lease)) is not None]

    def _remembered(self) -> list[Asked]:
        since_ms = self._model.now_ms - REQUEST_MEMORY_MS
        return [asked for asked in self._asked if asked.at_ms > since_ms]

    def _remembered_claims(self) -> dict[str, list[Lease]]:
        """What each claim or exchange gave, by its request."""
        return {
            asked.request: _leases_of(asked.answer.claimed)
            for asked in self._remembered()
            if isinstance(asked.answer, Exchanged)
        }

    # ── drawing ──────────────────────────────────────────────────────────────────────────

    def _fresh(self, word: str) -> str:
        self._numbers += 1
        return f"{word}-{self._numbers}"

    def _named(self, draft: drawing.Draft) -> NewJob:
        """With a name of its own, by which it is known again whatever id the store gives."""
        options = dict(draft)
        queue, own_id, data = options.pop("queue"), options.pop("id", None), options.pop("data", b"{}")
        completed, failed = drawing.KEPT[queue]
        none = Keep(count=0) if options.pop("keep_none", False) else None
        options["keep_completed"], options["keep_failed"] = none or completed, none or failed
        if "start_in_ms" in options:
            options["start_by_ms"] = self._model.now_ms + options.pop("start_in_ms")
        if "dedup" in options:
            options["dedup"] = self._dedup
            if self._dedup.keep_last_if_active:
                options.pop("lifo", None)  # it may be added amid a rescue: who then is at the head is left open
        return NewJob(queue, self._fresh("job"), data, own_id, JobSpec(**options))

    def _draw_settlements(
        self, data: st.DataObject, verdicts: Sequence[Verdict], then: Sequence[drawing.Draft]
    ) -> list[Settlement]:
        """For leases that are held, more often than for any that ever was given."""
        if not self._leases:
            return []
        held = [lease for lease in self._leases if self._model.held(lease) is not None]
        leases = st.sampled_from([*held[::-1] * 3, *self._leases])
        settlements = [Settlement(data.draw(leases, "lease"), verdict) for verdict in verdicts]
        for n, (lease, verdict) in enumerate((each.lease, each.verdict) for each in settlements):
            if isinstance(verdict, Completed):
                followers = tuple(self._named(draft) for draft in then)
                settlements[n] = Settlement(lease, Completed(verdict.result, followers))
        return settlements


_STATES_OF: dict[EventKind, frozenset[State]] = {
    EventKind.WAITING: READY,
    EventKind.DELAYED: frozenset({State.DELAYED}),
    EventKind.ACTIVE: frozenset({State.ACTIVE}),
    EventKind.COMPLETED: frozenset({State.COMPLETED}),
    EventKind.FAILED: frozenset({State.FAILED}),
    EventKind.REMOVED: frozenset(),
}
"""Which state a job is in after an event of this kind."""


def store_machine(place: Place) -> type[StoreMachine]:
    """The machine for the stores of this place; its `TestCase` is for pytest."""
    return type("StoreMachineHere", (StoreMachine,), {"place": staticmethod(place)})


def _comparable(record: JobRecord) -> JobRecord:
    """Without what a store may word, or keep of earlier attempts, as it likes."""
    failure = record.failure
    if failure is not None and failure.kind != FailureKind.ERROR:
        failure = msgspec.structs.replace(failure, message="")
    if record.state == State.ACTIVE:
        return msgspec.structs.replace(record, failure=failure)
    return msgspec.structs.replace(record, failure=failure, worker=None, started_ms=None)


def _leases_of(claimed: Claimed) -> list[Lease]:
    return [job.lease for job in claimed.jobs]


async def _or_refusal(call: Awaitable[T]) -> T | type[JobError]:
    try:
        return await call
    except JobError as refusal:
        return type(refusal)


def _do(call: Callable[[], T]) -> T | type[JobError]:
    try:
        return call()
    except JobError as refusal:
        return type(refusal)


async def _lose_answer(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Ask, and go away before the answer comes."""
    asking = asyncio.create_task(call())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
