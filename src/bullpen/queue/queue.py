"""What a producer and an operator hold of a queue."""

from collections.abc import Sequence
from typing import Any, Unpack

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import BadData, BadOption, JobMissing
from bullpen.job.checks import check_at_least
from bullpen.job.limits import CLOSE_AT_MOST_MS, QueueStanding, Rate
from bullpen.job.names import check_explicit_id, check_job_name, check_queue_name, is_text
from bullpen.job.options import Duration, JobOptions, OptionFields, to_ms, with_options
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.trees import check_trees, with_ids
from bullpen.observing import Adding, Observers
from bullpen.queue.adder import Adder
from bullpen.queue.buffer import Buffer
from bullpen.queue.groups import Groups, queue_limits
from bullpen.queue.job import Job
from bullpen.queue.payload import MAX_PAYLOAD_BYTES, Codec, to_bytes
from bullpen.queue.results import Results
from bullpen.queue.schedules import Schedules
from bullpen.queue.trips import add_jobs
from bullpen.stores.base import Added, Counts, JobPage, Store

_MANY = 1_000_000_000


class Queue:
    """A named line of jobs. Cheap to make; all queues of a store share its connections."""

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        defaults: JobOptions | None = None,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        codec: Codec | None = None,
        buffer: Buffer | None = None,
        clock: Clock = SYSTEM_CLOCK,
        observers: Observers | None = None,
    ) -> None:
        self.store = store
        self.producer: Store | Buffer = store if buffer is None else buffer
        """Who takes adds: the store, or a buffer that holds them while the store is away."""
        self.name = check_queue_name(name)
        self.codec = codec
        self._results: Results | None = None
        if defaults is not None and not isinstance(defaults, JobOptions):
            raise BadOption(f"defaults: a JobOptions, not {defaults!r}")
        self._defaults = defaults or JobOptions()
        self._usual_spec: JobSpec | None = None
        self._max_payload_bytes = max_payload_bytes
        self._clock = clock
        self.observers = Observers() if observers is None else observers

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    @property
    def results(self) -> Results:
        """Those who await results on this event loop; a queue may be used on several, one after the other."""
        if self._results is None or not self._results.is_on_this_loop:
            self._results = Results(self.store, self.name)
        return self._results

    @property
    def schedules(self) -> Schedules:
        """What is added to this queue again and again."""
        return Schedules(self)

    # ── adding ───────────────────────────────────────────────────────────────────────────

    async def add(self, name: str, data: Any = None, **options: Unpack[OptionFields]) -> Job[Any]:
        """Add one job. Once this returns, it survives a crash of anything.

        Raises BadName, BadId, BadOption, BadData or PayloadTooLarge before anything happens,
        StoreUnavailable or StoreFull if the store did not take it.
        """
        return await self._add(self.prepare(name, data, **options))

    async def add_prepared(self, job: NewJob) -> Job[Any]:
        """Add one job that `prepare` of this queue made.

        Another queue's is BadOption. One that was made by hand is checked: it travels with the adds of others.
        """
        if job.queue != self.name:
            raise BadOption(f"job: is for queue {job.queue!r}, not {self.name!r}")
        _check_prepared(None, job)
        return await self._add(job)

    async def _add(self, job: NewJob) -> Job[Any]:
        if job.children:
            # By itself: a tree that is refused must not take others along.
            (tree,) = await add_all([(self, job)])
            return tree
        if self.observers:
            added = await self._add_observed(job)
        else:
            added = await Adder.of(self.producer).add(job)
        return Job(self, added.id, added.outcome)

    async def _add_observed(self, job: NewJob) -> Added:
        adding = Adding([job])
        with self.observers.adding(adding):
            adding.added = [await Adder.of(self.producer).add(adding.jobs[0])]
        return adding.added[0]

    async def add_bulk(self, jobs: Sequence[NewJob]) -> list[Job[Any]]:
        """Add many prepared jobs of this queue: all of them or none."""
        for n, job in enumerate(jobs):
            if job.queue != self.name:
                raise BadOption(f"jobs[{n}]: is for queue {job.queue!r}, not {self.name!r}; use add_all")
        return await add_all([(self, job) for job in jobs])

    def prepare(self, name: str, data: Any = None, **options: Unpack[OptionFields]) -> NewJob:
        """Check a job and make it ready for `add_bulk` or `add_all`."""
        if options:
            return self.prepare_with(name, data, with_options(self._defaults, options))
        return self._new_job(name, data, self._defaults.id, self._spec_of_defaults())

    def prepare_with(self, name: str, data: Any, options: JobOptions) -> NewJob:
        """The same, with options that stand by themselves: the queue's defaults are not asked."""
        return self._new_job(name, data, options.id, options.to_spec(self._clock.now_ms()))

    def _spec_of_defaults(self) -> JobSpec:
        """One for all jobs without options of their own, so that it is written once; unless it tells a time."""
        defaults = self._defaults
        if self._usual_spec is None or defaults.run_at is not None or defaults.start_by is not None:
            self._usual_spec = defaults.to_spec(self._clock.now_ms())
        return self._usual_spec

    def _new_job(self, name: str, data: Any, job_id: str | None, spec: JobSpec) -> NewJob:
        return NewJob(self.name, check_job_name(name), self.payload(data), job_id, spec)

    def payload(self, data: Any) -> bytes:
        """The data as it is stored; nothing becomes an empty object."""
        value = {} if data is None else data
        return to_bytes(value, what="data", codec=self.codec, limit=self._max_payload_bytes)

    def signal_payload(self, name: str, payload: Any) -> bytes:
        """What a signal carries, as it is stored."""
        return to_bytes(payload, what=f"signal {name!r}", codec=self.codec, limit=self._max_payload_bytes)

    # ── limits ───────────────────────────────────────────────────────────────────────────

    @property
    def groups(self) -> Groups:
        """The groups in which its jobs wait: their limits, pauses and counts."""
        return Groups(self.store, self.name)

    async def set_limits(self, *, concurrency: int | None = None, rate: Rate | None = None) -> None:
        """Limit what all workers together do, from now on: how many run at once, how many start in a while.

        In place of the limits before; what is not said is without a limit.
        """
        await self.store.set_limits(self.name, queue_limits(concurrency, rate))

    async def close_for(self, delay: Duration) -> None:
        """Start none of its jobs for so long, on any worker: someone else has enough, as HTTP 429 says.

        What runs goes on. The longest of several closings stands; a day is the most.
        """
        await self.store.close_for(self.name, min(to_ms("delay", delay), CLOSE_AT_MOST_MS))

    async def limits(self) -> QueueStanding:
        return await self.store.limits(self.name)

    # ── looking ──────────────────────────────────────────────────────────────────────────

    def job(self, job_id: str) -> Job[Any]:
        """A handle to a job by its id, without looking whether it exists; JobMissing for what is no id at all."""
        if not is_text(job_id):
            raise JobMissing(f"no job {job_id!r} in queue {self.name!r}")
        return Job(self, job_id)

    async def counts(self) -> Counts:
        return await self.store.counts(self.name)

    async def jobs(
        self, state: State | str, *, limit: int = 100, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        """A page of the jobs in one state."""
        check_at_least("limit", limit, 1)
        return await self.store.jobs(self.name, _state(state), limit=limit, cursor=cursor, newest_first=newest_first)

    async def oldest_waiting(self) -> float | None:
        """For how many seconds the job that is next in line has been runnable; None if none is."""
        since_ms = await self.store.oldest_waiting_ms(self.name)
        return None if since_ms is None else max(0, self._clock.now_ms() - since_ms) / 1000

    # ── steering ─────────────────────────────────────────────────────────────────────────

    async def pause(self) -> None:
        """Give out no more jobs, to no worker; running ones go on."""
        await self.store.pause(self.name)

    async def resume(self) -> None:
        await self.store.resume(self.name)

    async def retry_all(self, state: State | str = State.FAILED, *, limit: int = _MANY) -> int:
        """Run finished jobs again, oldest first; how many."""
        return await self.store.retry_all(self.name, _state(state), limit=limit)

    async def drain(self, *, delayed: bool = False) -> int:
        """Remove all that waits (and what is delayed, if asked); how many."""
        return await self.store.drain(self.name, delayed=delayed)

    async def clean(self, state: State | str, *, older_than: Duration = 0, limit: int = _MANY) -> int:
        """Remove jobs that are in a state for that long; how many."""
        older_than_ms = to_ms("older_than", older_than)
        return await self.store.clean(self.name, _state(state), older_than_ms=older_than_ms, limit=limit)

    async def obliterate(self, *, force: bool = False) -> None:
        """Remove the queue and everything in it, for good."""
        await self.store.obliterate(self.name, force=force)


async def add_all(jobs: Sequence[tuple[Queue, NewJob]]) -> list[Job[Any]]:
    """Add prepared jobs to several queues of one store in one atomic step."""
    if not jobs:
        return []
    store = jobs[0][0].store
    for n, (queue, job) in enumerate(jobs):
        if queue.store is not store or job.queue != queue.name:
            raise BadOption(f"jobs[{n}]: was not prepared by a queue of the same store")
        _check_prepared(n, job)
    check_trees([job for _, job in jobs])
    adding = Adding([with_ids(job) for _, job in jobs])
    with jobs[0][0].observers.adding(adding):
        adding.added = await add_jobs(jobs[0][0].producer, adding.jobs)
    added = adding.added
    return [_handle(queue, one) for (queue, _), one in zip(jobs, added, strict=True)]


def _handle(queue: Queue, added: Added) -> Job[Any]:
    job: Job[Any] = Job(queue, added.id, added.outcome)
    job.added = added
    return job


def _check_prepared(n: int | None, job: NewJob) -> None:
    """A job that `prepare` made passes; one that was made by hand must be as sound."""
    for child in job.children:
        check_queue_name(child.queue)
        _check_prepared(n, child)
    check_job_name(job.name)
    if job.id is not None:
        check_explicit_id(job.id)
    if not isinstance(job.data, bytes):
        place = "job" if n is None else f"jobs[{n}]"
        raise BadData(f"{place}: data is the JSON as bytes, not {type(job.data).__name__}; use prepare")


def _state(state: State | str) -> State:
    try:
        return State(state)
    except ValueError:
        raise BadOption(f"state: one of {', '.join(State)}, not {state!r}") from None
