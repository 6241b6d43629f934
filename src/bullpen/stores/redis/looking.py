"""Looking: all that only reads."""

import contextlib
import random
from collections.abc import Collection, Sequence
from typing import Annotated, Any

import msgspec

from bullpen.errors import BadOption, StoreFull, StoreReadOnly
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.stores.base import Counts, JobPage, LogPage, WorkerInfo
from bullpen.stores.redis import scripts
from bullpen.stores.redis.reading import due_ms, read_record
from bullpen.stores.redis.site import MISSING, Site
from bullpen.stores.redis.steering import job_missing, queue_missing

_SEEN = 20
"""A line has no scores: its cursor names the last jobs of the page, of which some may be gone by then."""

_SEARCH_EVERY_MS = 120_000
"""Between two searches for queues of Node's, by whichever process; up to twice that, so that none falls into step."""
_SEARCHING_MS = 60_000
"""Whoever searches for longer than this may be gone: another begins."""
_LISTED_AT_ONCE = 1_000
_TAKES_NOTHING = (StoreFull, StoreReadOnly)
"""A server in such a state still tells its queues."""

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
    keys = site.keys
    word, listed = await site.connection.run(scripts.QUEUES, keys.queues, keys.before_names, keys.queues_searched)
    known = {name.decode() for name in listed}
    if word == b"due" and await _may_search(site, known):
        known.update(await _search(site))
    return sorted(known)


async def _may_search(site: Site, known: Collection[str]) -> bool:
    """One searches for all; whoever knows of no queue does not wait for another."""
    try:
        taken = await site.connection.command("SET", site.keys.queues_searching, "1", "NX", "PX", str(_SEARCHING_MS))
    except _TAKES_NOTHING:
        taken = None
    return bool(taken) or not known


async def _search(site: Site) -> list[str]:
    """Queues that Node made and that we never touched are on no list: the whole server is looked through."""
    keys = site.keys
    found: list[bytes] = []
    async for some in site.scan(keys.any_meta):
        found += some
    names = keys.queue_names(found)
    with contextlib.suppress(*_TAKES_NOTHING):
        for first in range(0, len(names), _LISTED_AT_ONCE):
            await site.connection.command("SADD", keys.queues, *names[first : first + _LISTED_AT_ONCE])
        rest_ms = random.randint(_SEARCH_EVERY_MS, 2 * _SEARCH_EVERY_MS)  # noqa: S311 - it hides nothing
        await site.connection.command("SET", keys.queues_searched, "1", "PX", str(rest_ms))
        await site.connection.command("DEL", keys.queues_searching)
    return names


async def oldest_waiting_ms(site: Site, queue: str) -> int | None:
    found = await site.ask(scripts.OLDEST, queue)
    if found == MISSING:
        raise queue_missing(queue)
    return int(float(found)) if found else None


async def workers(site: Site) -> Sequence[WorkerInfo]:
    keys = site.keys
    words = await site.connection.run(scripts.WORKERS, keys.workers, keys.worker_infos, site.now)
    return sorted(map(_decode_worker, words), key=lambda info: info.name)
