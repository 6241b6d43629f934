"""Looking: all that only reads."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from bullpen.errors import BadOption
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.stores.base import Counts, JobPage, LogPage, WorkerInfo
from bullpen.stores.redis import scripts
from bullpen.stores.redis.reading import due_ms, read_record
from bullpen.stores.redis.site import MISSING, Site
from bullpen.stores.redis.steering import job_missing, queue_missing

_SEEN = 20
"""A line has no scores: its cursor names the last jobs of the page, of which some may be gone by then."""

_encode = msgspec.json.Encoder().encode
_decode_worker = msgspec.json.Decoder(WorkerInfo).decode


async def job(site: Site, ref: JobRef) -> JobRecord:
    found = await site.ask(scripts.JOB, ref.queue, ref.id)
    if not found:
        raise job_missing(ref)
    state, run_at_ms, fields = found
    return read_record(ref, State(state.decode()), run_at_ms if isinstance(run_at_ms, int) else None, fields, site.keys)


async def look(site: Site, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
    if not ids:
        return []
    found = await site.ask(scripts.LOOK, queue, *ids)
    return [
        read_record(
            JobRef(queue, job_id),
            State(one[0].decode()),
            one[1] if isinstance(one[1], int) else None,
            one[2],
            site.keys,
        )
        if one
        else None
        for job_id, one in zip(ids, found, strict=True)
    ]


async def jobs(site: Site, queue: str, state: State, limit: int, cursor: str | None, *, newest_first: bool) -> JobPage:
    seen = _Cursor() if cursor is None else _parse_cursor(cursor)
    way = "newest first" if newest_first else ""
    where = "grouped" if seen.grouped else ""
    found = await site.ask(scripts.JOBS, queue, state, str(limit), way, where, seen.score, *seen.ids)
    if found == MISSING:
        raise queue_missing(queue)
    page, more = found[:limit], len(found) > limit
    records = [
        read_record(
            JobRef(queue, job_id.decode()), state, due_ms(score) if state is State.DELAYED else None, fields, site.keys
        )
        for job_id, score, _, fields in page
        # An entry whose record is lost is no job.
        if fields
    ]
    return JobPage(tuple(records), _cursor_after(page) if more else None)


class _Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A place in the order, not a number of jobs: the score where the state has one, and the last ids."""

    score: Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?$")] = "0"
    ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=_SEEN)] = ()
    grouped: bool = False
    """Among the jobs that wait in groups."""


def _cursor_after(page: Sequence[Sequence[Any]]) -> str:
    last_id, score, grouped, _ = page[-1]
    if score:
        return _encode(_Cursor(score.decode(), (last_id.decode(),), bool(grouped))).decode()
    return _encode(_Cursor(ids=tuple(job_id.decode() for job_id, *_ in reversed(page[-_SEEN:])))).decode()


def _parse_cursor(cursor: str) -> _Cursor:
    try:
        return _decode_cursor(cursor)
    except msgspec.DecodeError as error:
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave") from error


_decode_cursor = msgspec.json.Decoder(_Cursor).decode


async def logs(site: Site, ref: JobRef, start: int, limit: int) -> LogPage:
    keys = site.keys
    found = await site.connection.run(
        scripts.LOGS, keys.meta(ref.queue), keys.base(ref.queue), ref.id, str(start), str(limit)
    )
    if found == MISSING:
        raise job_missing(ref)
    lines, total = found
    return LogPage(tuple(line.decode(errors="replace") for line in lines), total)


async def counts(site: Site, queue: str) -> Counts:
    found = await site.ask(scripts.COUNTS, queue)
    if not found:
        raise queue_missing(queue)
    waiting, prioritized, delayed, active, waiting_children, completed, failed, word = found
    return Counts(
        waiting=waiting,
        prioritized=prioritized,
        delayed=delayed,
        active=active,
        waiting_children=waiting_children,
        completed=completed,
        failed=failed,
        paused=word == b"paused",
    )


async def queues(site: Site) -> Sequence[str]:
    # BullMQ keeps no list of queues, and Node may have made some that we never touched.
    found: list[bytes] = []
    async for keys in site.scan(site.keys.any_meta):
        found += keys
    return site.keys.queue_names(found)


async def oldest_waiting_ms(site: Site, queue: str) -> int | None:
    found = await site.ask(scripts.OLDEST, queue)
    if found == MISSING:
        raise queue_missing(queue)
    return int(float(found)) if found else None


async def workers(site: Site) -> Sequence[WorkerInfo]:
    keys = site.keys
    words = await site.connection.run(scripts.WORKERS, keys.workers, keys.worker_infos, site.now)
    return sorted(map(_decode_worker, words), key=lambda info: info.name)
