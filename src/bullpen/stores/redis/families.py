"""Parents and children: adding trees, and what a parent knows of its children."""

from collections.abc import Sequence

from bullpen.errors import BadOption, LeaseLost, WrongState
from bullpen.job.record import JobRef, Lease
from bullpen.job.spec import NewJob
from bullpen.job.trees import check_children, check_trees, flatten
from bullpen.stores.base import Added, Child, ChildPage, ChildState
from bullpen.stores.redis.asking import ask_add, ask_add_children
from bullpen.stores.redis.reading import read_added
from bullpen.stores.redis.scripts import ADD, ADD_CHILDREN, CHILDREN
from bullpen.stores.redis.site import MISSING, Site
from bullpen.stores.redis.steering import job_missing

_KINDS = tuple(ChildState)
_START = "0"


async def add(site: Site, jobs: Sequence[NewJob], request: str) -> list[Added]:
    check_trees(jobs)
    message = ask_add(site.keys, jobs, site.clock.now_ms())
    answer = await site.connection.run(ADD, site.keys.request(request), message)
    if isinstance(answer, int):
        raise _not_free(jobs, answer)
    return read_added(answer, jobs, site.keys)


async def add_children(site: Site, lease: Lease, jobs: Sequence[NewJob], request: str) -> list[Added]:
    check_children(jobs)
    message = ask_add_children(site.keys, lease, jobs, site.clock.now_ms())
    answer = await site.connection.run(ADD_CHILDREN, site.keys.request(request), message)
    if isinstance(answer, bytes):
        raise LeaseLost(f"job {lease.ref.id!r} of queue {lease.ref.queue!r} is no longer held under this lease")
    if isinstance(answer, int):
        raise _not_free(jobs, answer)
    return read_added(answer, jobs, site.keys)


def _not_free(jobs: Sequence[NewJob], place: int) -> WrongState:
    job = flatten(jobs)[place - 1].job
    return WrongState(f"job {job.id!r} of queue {job.queue!r} has another parent, or is one of this one's ancestors")


async def children(site: Site, ref: JobRef, limit: int, cursor: str | None) -> ChildPage:
    kind, place = _parse_cursor(cursor)
    found: list[Child] = []
    while len(found) < limit:
        answer = await site.ask(CHILDREN, ref.queue, ref.id, kind, place, str(limit))
        if answer == MISSING:
            raise job_missing(ref)
        after, flat = answer
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            if (child := site.keys.ref_of(key)) is not None:
                found.append(_read_child(child, kind, value))
        place = after.decode()
        if place == _START:
            if kind == _KINDS[-1]:
                return ChildPage(tuple(found), None)
            kind = _KINDS[_KINDS.index(kind) + 1]
    return ChildPage(tuple(found), f"{kind}:{place}")


def _read_child(ref: JobRef, kind: ChildState, value: bytes) -> Child:
    if kind == ChildState.COMPLETED:
        return Child(ref, kind, result=value)
    return Child(ref, kind, reason=value.decode(errors="replace") if kind == ChildState.IGNORED else None)


def _parse_cursor(cursor: str | None) -> tuple[ChildState, str]:
    kind, _, place = (cursor or f"{_KINDS[0]}:{_START}").partition(":")
    if kind not in _KINDS or not (place.isascii() and place.isdecimal()):
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return ChildState(kind), place
