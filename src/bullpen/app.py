"""The application: its job types, its store, and what is wired from them."""

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from bullpen.deadletters.letters import DeadLetters
from bullpen.errors import BadOption, StoreUnavailable
from bullpen.flows.producer import FlowProducer
from bullpen.flows.shapes import with_children
from bullpen.job.schedule import ScheduleRecord
from bullpen.job.spec import NewJob
from bullpen.jobtypes.declaring import JobTypes, limits_of
from bullpen.jobtypes.hooks import Middleware
from bullpen.jobtypes.jobtype import JobType
from bullpen.observing import Observer, Observers
from bullpen.queue.buffer import Buffer
from bullpen.queue.events import QueueEvents
from bullpen.queue.job import Job
from bullpen.queue.payload import MAX_PAYLOAD_BYTES, Codec
from bullpen.queue.queue import Queue
from bullpen.scheduling.options import ScheduleFields
from bullpen.settings import store_from
from bullpen.stores.base import Store
from bullpen.sync import Sync
from bullpen.worker.options import VerifyTenant, WorkerOptions
from bullpen.worker.worker import Worker

if TYPE_CHECKING:
    from bullpen.agents.agents import Agents
    from bullpen.agents.tools.tool import Tool, ToolOptions


class Bullpen(JobTypes):
    """Job types and where their jobs are kept.

        pen = Bullpen()                       # BULLPEN_STORE, or a file in ./.bullpen/

        @pen.job(queue="mail", attempts=5)
        async def welcome(ctx: Context, user_id: int) -> str: ...

        job = await welcome.add(user_id=42)

    With `buffer=N`, up to N adds wait here while the store is away; else such an add is an error.
    """

    def __init__(
        self,
        store: Store | str | None = None,
        *,
        buffer: int = 0,
        middleware: Sequence[Middleware] = (),
        codec: Codec | None = None,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        verify_tenant: VerifyTenant | None = None,
        telemetry: Sequence[Observer] = (),
    ) -> None:
        super().__init__(middleware)
        self.store: Store = store_from(store) if store is None or isinstance(store, str) else store
        self._buffer = Buffer(self.store, buffer) if buffer else None
        self.codec = codec
        self.verify_tenant = verify_tenant
        """Asked by its workers before a handler runs; may also be set later, before they start."""
        self.telemetry = Observers(telemetry)
        """Who looks on at its queues and workers; may also be added to later, before these work."""
        self._max_payload_bytes = max_payload_bytes
        self._queues: dict[str, Queue] = {}
        self._agents: Agents | None = None
        self.sync: Sync[Bullpen] = Sync(self._twin)
        """The same for code that is not async: Django, Flask, scripts."""

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except StoreUnavailable:
            if self._buffer is None:
                raise  # with one, a server that only adds can start without the store
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect now, rather than with the first use."""
        await self.store.open()

    async def ready(self) -> None:
        """Opened; with a buffer also while the store is away, since adds are taken then."""
        if self._buffer is None:
            await self.store.open()

    async def close(self) -> None:
        """Let go of the store; what waits in the buffer is sent first, or BufferLost says how many were not."""
        try:
            if self._agents is not None:
                await self._agents.close()
            if self._buffer is not None:
                await self._buffer.close()
        finally:
            await self.store.close()

    # ── using ────────────────────────────────────────────────────────────────────────────

    def queue(self, name: str) -> Queue:
        """The queue of this name, for what concerns all its jobs."""
        if name not in self._queues:
            self._queues[name] = Queue(
                self.store,
                name,
                codec=self.codec,
                max_payload_bytes=self._max_payload_bytes,
                buffer=self._buffer,
                clock=self.store.clock,
                observers=self.telemetry,
            )
        return self._queues[name]

    async def schedule(
        self, schedule_id: str, job: JobType[..., Any] | NewJob, **when: Unpack[ScheduleFields]
    ) -> ScheduleRecord:
        """Add this job again and again, by cron or by interval; the same again changes nothing.

        `job` is a job type, or what its `prepare` gives where it needs arguments or options. All else
        is at `pen.queue(name).schedules`: list, pause, resume, run now, remove.
        """
        new = job if isinstance(job, NewJob) else job.prepare()
        await self.open()
        return await self.queue(new.queue).schedules.upsert(schedule_id, new, **when)

    @property
    def dead_letters(self) -> DeadLetters:
        """The failed jobs of all queues of the store."""
        return DeadLetters(self.store, codec=self.codec)

    @contextmanager
    def using(self, store: Store) -> Iterator[Self]:
        """Keep jobs in another store for a while, as tests do. Queues and jobs in hand stay where they were."""
        before = self.store, self._buffer, self._queues, self.sync
        self.store, self._buffer, self._queues, self.sync = store, None, {}, Sync(self._twin)
        try:
            yield self
        finally:
            self.sync.close()
            self.store, self._buffer, self._queues, self.sync = before

    @property
    def agents(self) -> "Agents":
        """Runs of agents on these queues, with what the environment says; `Agents(pen, …)` says more."""
        if self._agents is None:
            try:
                # They stand on this room, and are installed apart.
                importlib.import_module("bullpen.agents.agents").Agents(self)
            except ModuleNotFoundError as missing:
                raise BadOption("agents: are installed apart: pip install 'bullpen[agents]'") from missing
            assert self._agents is not None
        return self._agents

    def employ(self, agents: "Agents") -> None:
        """For the agents themselves: these are this application's."""
        if self._agents is not None:
            raise BadOption("agents: this application has some; give them all their options at once")
        self._agents = agents

    @overload
    def tool(self, function: Callable[..., Any], /) -> "Tool": ...

    @overload
    def tool(self, **options: "Unpack[ToolOptions]") -> Callable[[Callable[..., Any]], "Tool"]: ...

    def tool(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:  # type: ignore[misc]  # as `job`
        """Make a tool of a typed function for this application's agents: `@pen.tool(policy=Policy.READ_ONLY)`."""
        return self.agents.tool(**options) if function is None else self.agents.tool(function)

    async def flow(self, parent: NewJob, children: Sequence[NewJob] = ()) -> Job[Any]:
        """Add a job that runs after these children, all in one step: `pen.flow(report.prepare(…), [fetch.prepare(…)])`.

        Each is prepared by its job type or queue, and may have children itself; `chain` and `group`
        make such trees. The result of the job is read as its job type says.
        """
        tree = with_children(parent, children)
        await self.ready()
        job = await self.queue(tree.queue).add_prepared(tree)
        known = self.types.get((tree.queue, tree.name))
        return job if known is None else job.reading(known.read_result)

    @property
    def flows(self) -> FlowProducer:
        """Adds trees of jobs by the names of their queues, and shows them."""
        return FlowProducer(self.store, codec=self.codec, clock=self.store.clock, observers=self.telemetry)

    def events(self, queue: str, *, after: str | None = None) -> QueueEvents:
        return QueueEvents(self.store, queue, after=after)

    def worker(self, queues: Sequence[str] = (), options: WorkerOptions | None = None) -> Worker:
        """A worker for the job types of these queues, or of all."""
        handlers = self.handlers(queues)
        return Worker(
            self.store, handlers, self.worker_options(options), on_failed_unrun=self.alert_of, on_leave=self.close
        )

    def worker_options(self, options: WorkerOptions | None = None) -> WorkerOptions:
        """These options, with what the application says where they are silent."""
        options = options or WorkerOptions()
        return dataclasses.replace(
            options,
            codec=options.codec if options.codec is not None else self.codec,
            verify_tenant=options.verify_tenant if options.verify_tenant is not None else self.verify_tenant,
            observers=options.observers or self.telemetry,
            queue_limits=limits_of(self.types.values()) | dict(options.queue_limits),
        )

    def _twin(self) -> "Bullpen":
        """The same application on a store of its own, for another event loop."""
        twin = Bullpen(
            self.store.another(),
            buffer=0 if self._buffer is None else self._buffer.limit,
            codec=self.codec,
            max_payload_bytes=self._max_payload_bytes,
            verify_tenant=self.verify_tenant,
        )
        twin.types, twin.telemetry = self.types, self.telemetry
        return twin
