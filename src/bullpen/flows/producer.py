"""What BullMQ calls a flow producer: adds trees, and shows them."""

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import msgspec

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import JobMissing
from bullpen.flows.shapes import with_children
from bullpen.job.options import OptionFields
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.observing import Observers
from bullpen.queue.job import Job
from bullpen.queue.payload import Codec
from bullpen.queue.queue import Queue, add_all
from bullpen.stores.base import Added, ChildState, Store


class FlowNode(msgspec.Struct, frozen=True):
    """A job of a tree that was added, and those that it waits for."""

    job: Job[Any]
    children: tuple["FlowNode", ...] = ()

    def __iter__(self) -> Iterator["FlowNode"]:
        """All nodes, each before its children."""
        yield self
        for child in self.children:
            yield from child


class FlowView(msgspec.Struct, frozen=True):
    """A tree as it stands: a job, what its parent knows of it, and its children as far as they were asked for."""

    ref: JobRef
    record: JobRecord | None
    """None once the job is gone."""
    state: ChildState | None
    """For its parent; None for the root."""
    children: tuple["FlowView", ...] = ()


class FlowProducer:
    """Adds trees of jobs across the queues of a store, each in one atomic step."""

    def __init__(
        self,
        store: Store,
        *,
        codec: Codec | None = None,
        clock: Clock = SYSTEM_CLOCK,
        observers: Observers | None = None,
    ) -> None:
        self.store = store
        self._codec = codec
        self._clock = clock
        self._observers = observers
        self._queues: dict[str, Queue] = {}

    def prepare(
        self,
        queue: str,
        name: str,
        data: Any = None,
        *,
        children: Sequence[NewJob] = (),
        **options: Unpack[OptionFields],
    ) -> NewJob:
        """Check a job and give it these children; the root of what `add` takes."""
        return with_children(self._queue(queue).prepare(name, data, **options), children)

    async def add(self, tree: NewJob) -> FlowNode:
        """Add the whole tree, or nothing of it."""
        (node,) = await self.add_bulk([tree])
        return node

    async def add_bulk(self, trees: Sequence[NewJob]) -> list[FlowNode]:
        """Add all of these trees, or none of them."""
        jobs = await add_all([(self._queue(tree.queue), tree) for tree in trees])
        return [self._node(job, tree, job.added) for job, tree in zip(jobs, trees, strict=True)]

    async def get(self, queue: str, job_id: str, *, depth: int = 10, max_children: int = 20) -> FlowView:
        """A tree as it stands, down to that depth, with that many children of each job at most."""
        return await self._view(JobRef(queue, job_id), None, depth, max_children)

    def _queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = Queue(
                self.store, name, codec=self._codec, clock=self._clock, observers=self._observers
            )
        return self._queues[name]

    def _node(self, job: Job[Any], new: NewJob, added: Added | None) -> FlowNode:
        below = zip(new.children, added.children if added is not None else (), strict=False)
        children = [self._node(Job(self._queue(child.queue), one.id, one.outcome), child, one) for child, one in below]
        return FlowNode(job, tuple(children))

    async def _view(self, ref: JobRef, state: ChildState | None, depth: int, max_children: int) -> FlowView:
        try:
            record = await self.store.job(ref)
        except JobMissing:
            if state is None:
                raise
            return FlowView(ref, None, state)
        if depth <= 1:
            return FlowView(ref, record, state)
        page = await self.store.children(ref, limit=max_children)
        below = [
            await self._view(child.ref, child.state, depth - 1, max_children) for child in page.children[:max_children]
        ]
        return FlowView(ref, record, state, tuple(below))
