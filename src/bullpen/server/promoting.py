"""All delayed jobs of a queue, let run now: those that were delayed when somebody asked for it."""

import asyncio
from dataclasses import dataclass

from bullpen.errors import BadOption, JobMissing, WrongState
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.server.site import Site

_PAGE = 200


@dataclass(frozen=True, slots=True)
class PromotedJobs:
    count: int
    next_cursor: str | None
    """Where the others begin."""


async def promote_all(site: Site, queue: str, limit: int, cursor: str | None) -> PromotedJobs:
    """Let up to so many run, those that are due first before the others; parked jobs go on waiting for their signal."""
    began_ms, place = (site.clock.now_ms(), None) if cursor is None else _place(cursor)
    # Known first, then acted on: what fails and is tried again meanwhile is not taken up a second time.
    refs: list[JobRef] = []
    while len(refs) < limit:
        page = await site.queue(queue).jobs(State.DELAYED, limit=min(limit - len(refs), _PAGE), cursor=place)
        refs += [job.ref for job in page.jobs if _was_delayed(job, began_ms)]
        place = page.next_cursor
        if place is None:
            break
    count = 0
    for start in range(0, len(refs), _PAGE):
        count += sum(await asyncio.gather(*[_promoted(site, ref) for ref in refs[start : start + _PAGE]]))
    return PromotedJobs(count, None if place is None else f"{began_ms}.{place}")


def _was_delayed(job: JobRecord, began_ms: int) -> bool:
    """At that time; a job that ran since is one that we promoted, and waits for its next attempt."""
    return job.parked is None and job.added_ms <= began_ms and (job.started_ms is None or job.started_ms <= began_ms)


async def _promoted(site: Site, ref: JobRef) -> bool:
    try:
        await site.store.promote(ref)
    except (JobMissing, WrongState):
        return False  # someone else was quicker
    return True


def _place(cursor: str) -> tuple[int, str]:
    began, dot, place = cursor.partition(".")
    if not dot or not (began.isascii() and began.isdecimal() and len(began) < 17):
        raise BadOption(f"cursor: {cursor!r} is not one that an answer gave")
    return int(began), place
