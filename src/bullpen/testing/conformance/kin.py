"""Moves of promises about families: a tree added, and what its root knows of its children."""

from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, NewJob, OnFailure
from bullpen.stores.base import Child, ChildState, Store
from bullpen.testing.conformance.moves import MAIL, add

PARENTS = "parents"
PARTS = "parts"


def child_with(policy: OnFailure | None = None, queue: str = MAIL, **options: object) -> NewJob:
    return NewJob(queue, "child", spec=JobSpec(on_failure=policy, **options))  # type: ignore[arg-type]  # as a spec


def tree(*children: NewJob, spec: JobSpec | None = None) -> NewJob:
    return NewJob(PARENTS, "root", spec=spec or JobSpec(), children=children)


async def plant(store: Store, *children: NewJob, spec: JobSpec | None = None) -> tuple[JobRef, list[JobRef]]:
    """Add a root with these children: its name, and theirs."""
    (added,) = await add(store, tree(*children, spec=spec))
    refs = [JobRef(child.queue, one.id) for child, one in zip(children, added.children, strict=True)]
    return JobRef(PARENTS, added.id), refs


async def children_of(store: Store, ref: JobRef, *, limit: int = 1_000) -> list[Child]:
    found: list[Child] = []
    cursor = None
    while True:
        page = await store.children(ref, limit=limit, cursor=cursor)
        found += page.children
        cursor = page.next_cursor
        if cursor is None:
            return found


async def child_refs(store: Store, ref: JobRef, *, limit: int = 1_000) -> set[JobRef]:
    found = await children_of(store, ref, limit=limit)
    assert len(found) == len({child.ref for child in found})
    return {child.ref for child in found}


async def states_of(store: Store, ref: JobRef) -> list[ChildState]:
    return sorted(child.state for child in await children_of(store, ref))
