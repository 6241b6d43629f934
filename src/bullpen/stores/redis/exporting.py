"""Moving out: jobs and memories as they are, and jobs that another store has by now."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bullpen.errors import BadOption, MoveRefused, WrongState
from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.job.state import FINISHED, State
from bullpen.stores.moving import PAGE_STEPS_BYTES, MemoryPage, RememberedId, SavedJob, Subject, schedules_refused
from bullpen.stores.redis import packing, scripts
from bullpen.stores.redis.codec import FIELDS, decode_options
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.reading import due_ms, read_record
from bullpen.stores.redis.site import MISSING, Site
from bullpen.stores.redis.steering import expect_queue, queue_missing

_CURSOR = re.compile(r"(ids|subjects):([0-9]+)")
"""With which part of the memory to go on, and where: a place that SCAN gave."""
_START = "0"
_AT_ONCE = 1_000

_F = {word: name.encode() for word, name in FIELDS.items()}


async def export_jobs(site: Site, queue: str, state: State, limit: int) -> list[SavedJob]:
    if state == State.ACTIVE:
        await expect_queue(site, queue)
        raise WrongState("active jobs cannot be exported; wait for their end")
    found = await site.ask(scripts.EXPORT_JOBS, queue, state, str(limit), str(PAGE_STEPS_BYTES))
    if found == MISSING:
        raise queue_missing(queue)
    now_ms = site.clock.now_ms()
    # An entry whose record is lost is no job.
    return [_saved(JobRef(queue, entry[0].decode()), state, entry, now_ms, site.keys) for entry in found if entry[2]]


def _saved(ref: JobRef, state: State, entry: Sequence[Any], now_ms: int, keys: Keys) -> SavedJob:
    _, score, flat, lines, subject, journal, signals = entry
    record = read_record(ref, state, due_ms(score) if state is State.DELAYED else None, flat, keys)
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    if state is State.WAITING_CHILDREN or _F["parent_key"] in fields:
        raise MoveRefused(
            f"job {ref.id!r} of queue {ref.queue!r} is part of a flow, which cannot move: let it end first"
        )
    start_by = fields.get(_F["start_by"])
    is_unstarted = state not in FINISHED and record.started_ms is None
    return SavedJob(
        record,
        int(float(fields.get(_F["entered"]) or record.added_ms)),
        int(float(start_by)) if start_by and is_unstarted else None,
        tuple(line.decode(errors="replace") for line in lines),
        _subject(ref, subject, now_ms) if subject else None,
        packing.journal(journal),
        packing.signals(signals),
    )


def _subject(owner: JobRef, found: Sequence[Any], now_ms: int) -> Subject:
    subject_id, left_ms, kept = found
    return Subject(
        subject_id.decode(),
        owner.id,
        now_ms + left_ms if left_ms >= 0 else None,
        _kept(owner.queue, dict(zip(kept[::2], kept[1::2], strict=True))) if kept else None,
    )


def _kept(queue: str, fields: dict[bytes, bytes]) -> NewJob:
    return NewJob(
        queue,
        fields.get(_F["name"], b"").decode(),
        fields.get(_F["data"], b"{}"),
        fields[_F["next_id"]].decode(),
        decode_options(fields.get(_F["options"], b"")),
    )


async def export_memory(site: Site, queue: str, limit: int, cursor: str | None) -> MemoryPage:
    part, place = ("ids", _START) if cursor is None else _parse_cursor(cursor)
    if cursor is None:
        await _expect_movable(site, queue)
    last_id = int(await site.connection.command("GET", site.keys.counter(queue)) or 0)
    if part == "ids":
        ids, place = await _remembered(site, queue, limit, place)
        return MemoryPage(last_id, ids, (), f"subjects:{_START}" if place == _START else f"ids:{place}")
    subjects, place = await _subjects(site, queue, limit, place)
    return MemoryPage(last_id, (), subjects, None if place == _START else f"subjects:{place}")


def _parse_cursor(cursor: str) -> tuple[str, str]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return match[1], match[2]


async def _expect_movable(site: Site, queue: str) -> None:
    await expect_queue(site, queue)
    if await site.connection.command("EXISTS", site.keys.schedulers(queue)):
        raise schedules_refused(queue)


async def _remembered(site: Site, queue: str, limit: int, place: str) -> tuple[tuple[RememberedId, ...], str]:
    # Unlike pages by rank, a scan misses none that is there all the time, though others come and go.
    key, now_ms = site.keys.remembered_ids(queue), site.clock.now_ms()
    next_place, pairs = await site.connection.command("ZSCAN", key, place, "COUNT", str(limit))
    found = (RememberedId(one.decode(), int(float(until))) for one, until in pairs)
    return tuple(one for one in found if one.until_ms > now_ms), str(int(next_place))


async def _subjects(site: Site, queue: str, limit: int, place: str) -> tuple[tuple[Subject, ...], str]:
    keys, now_ms = site.keys, site.clock.now_ms()
    pattern = keys.any_subject(queue)
    count = str(max(limit, _AT_ONCE))  # of all keys of the server, most of which are no subjects
    next_place, found = await site.connection.command("SCAN", place, "MATCH", pattern, "COUNT", count)
    told = await site.connection.run(scripts.EXPORT_SUBJECTS, keys.meta(queue), *found) if found else ()
    subjects = tuple(Subject(keys.subject_of(key, queue), owner.decode(), now_ms + left) for key, owner, left in told)
    return subjects, str(int(next_place))


async def depart(site: Site, queue: str, ids: Sequence[str], signals: Mapping[str, int]) -> list[str]:
    gone: list[str] = []
    for first in range(0, max(len(ids), 1), _AT_ONCE):
        told = [text for one in ids[first : first + _AT_ONCE] for text in (one, str(signals.get(one, 0)))]
        answer = await site.ask(scripts.DEPART, queue, site.now, *told)
        if answer == MISSING:
            raise queue_missing(queue)
        gone += [one.decode() for one in answer]
    return gone
