"""Steering one job, or a queue, by hand."""

from collections.abc import Sequence

from bullpen.errors import JobMissing, QueueMissing, WrongState
from bullpen.job.record import JobRef
from bullpen.job.state import FINISHED, State
from bullpen.job.words import storable
from bullpen.stores.base import Cancellation
from bullpen.stores.redis import scripts
from bullpen.stores.redis.asking import ask_cancel
from bullpen.stores.redis.scripts import Script
from bullpen.stores.redis.site import MISSING, Site

_BULK = 1_000
"""How many jobs a script moves at once, so that others get their turn in between."""


# ── one job ──────────────────────────────────────────────────────────────────────────────


async def cancel(site: Site, ref: JobRef, reason: str) -> Cancellation:
    message = ask_cancel(site.keys, ref, reason, site.clock.now_ms())
    word = await site.connection.run(scripts.CANCEL, site.keys.meta(ref.queue), message)
    if word in (b"cancelled", b"cancelling"):
        return Cancellation(word.decode())
    raise refusal(ref, word, "to be cancelled")


async def retry(site: Site, ref: JobRef) -> None:
    await _steer(site, scripts.RETRY, ref, site.now, purpose="to be retried")


async def promote(site: Site, ref: JobRef) -> None:
    await _steer(site, scripts.PROMOTE, ref, site.now, purpose="to be promoted")


async def change_delay(site: Site, ref: JobRef, delay_ms: int) -> None:
    await _steer(site, scripts.CHANGE_DELAY, ref, site.now, str(delay_ms), purpose="for another delay")


async def change_priority(site: Site, ref: JobRef, priority: int) -> None:
    await _steer(site, scripts.CHANGE_PRIORITY, ref, str(priority), purpose="for another priority")


async def remove(site: Site, ref: JobRef) -> None:
    await _steer(site, scripts.REMOVE, ref, site.now, purpose="to be removed; cancel it first")


async def update_data(site: Site, ref: JobRef, data: bytes) -> None:
    await _steer(site, scripts.NOTE, ref, "data", data, purpose="for other data")


async def set_progress(site: Site, ref: JobRef, progress: bytes) -> None:
    await _steer(site, scripts.NOTE, ref, "progress", progress, purpose="for progress")


async def add_log(site: Site, ref: JobRef, lines: Sequence[str]) -> int:
    keys = site.keys
    kept = await site.connection.run(
        scripts.ADD_LOG, keys.meta(ref.queue), keys.base(ref.queue), ref.id, *map(storable, lines)
    )
    if kept == MISSING:
        raise job_missing(ref)
    return int(kept)


async def _steer(site: Site, script: Script, ref: JobRef, *arguments: str | bytes, purpose: str) -> None:
    word = await site.ask(script, ref.queue, ref.id, *arguments)
    if word != b"done":
        raise refusal(ref, word, purpose)


def refusal(ref: JobRef, word: bytes, purpose: str) -> JobMissing | WrongState:
    if word == MISSING:
        return job_missing(ref)
    if word == b"scheduled":
        return WrongState(f"job {ref.id!r} of queue {ref.queue!r} is the next one of a schedule; remove the schedule")
    return WrongState(f"job {ref.id!r} of queue {ref.queue!r} is {word.decode()}, not in a state {purpose}")


def job_missing(ref: JobRef) -> JobMissing:
    return JobMissing(f"no job {ref.id!r} in queue {ref.queue!r}")


# ── a queue ──────────────────────────────────────────────────────────────────────────────


async def pause(site: Site, queue: str) -> None:
    await site.ask(scripts.PAUSE, queue)


async def resume(site: Site, queue: str) -> None:
    if await site.ask(scripts.RESUME, queue) == MISSING:
        raise queue_missing(queue)


async def retry_all(site: Site, queue: str, state: State, limit: int) -> int:
    if state not in FINISHED:
        await expect_queue(site, queue)
        raise WrongState(f"only completed and failed jobs can be retried, not {state} ones")
    moved, by_ms = 0, site.now  # a job that fails again meanwhile is not one of those that were meant
    while moved < limit:
        portion = min(_BULK, limit - moved)
        some = await site.ask(scripts.RETRY_ALL, queue, state, str(portion), site.now, by_ms)
        if some == MISSING:
            raise queue_missing(queue)
        moved += some
        if some < portion:
            break
    return moved


async def drain(site: Site, queue: str, *, delayed: bool) -> int:
    gone = 0
    while True:
        some: bytes | int = await site.ask(scripts.DRAIN, queue, site.now, "delayed" if delayed else "", str(_BULK))
        if isinstance(some, bytes):
            raise queue_missing(queue)
        gone += some
        if some < _BULK:
            return gone


async def clean(site: Site, queue: str, state: State, older_than_ms: int, limit: int) -> int:
    if state == State.ACTIVE:
        await expect_queue(site, queue)
        raise WrongState("active jobs cannot be cleaned; cancel them")
    entered_by = str(site.clock.now_ms() - older_than_ms)
    gone = passed = 0
    while True:
        portion = str(limit - gone)
        answer = await site.ask(scripts.CLEAN, queue, site.now, state, entered_by, portion, str(passed))
        if answer == MISSING:
            raise queue_missing(queue)
        some, stayed, end = answer
        gone, passed = gone + int(some), passed + int(stayed)
        if end or gone >= limit:
            return gone


async def obliterate(site: Site, queue: str, *, force: bool) -> None:
    while True:
        answer = await site.ask(scripts.OBLITERATE, queue, "force" if force else "", str(_BULK), site.now)
        match answer:
            case b"missing":
                raise queue_missing(queue)
            case int(running):
                raise WrongState(f"queue {queue!r} has {running} active jobs: stop its workers first, or force")
            case b"done":
                break
    await _forget_subjects(site, queue)


async def _forget_subjects(site: Site, queue: str) -> None:
    """Subjects with a time of their own may outlive their jobs, and stand in no list."""
    keys = site.keys
    async for found in site.scan(keys.any_subject(queue)):
        if found:
            await site.connection.run(scripts.FORGET_SUBJECTS, keys.meta(queue), keys.base(queue), *found)


async def expect_queue(site: Site, queue: str) -> None:
    if not await site.connection.command("EXISTS", site.keys.meta(queue)):
        raise queue_missing(queue)


def queue_missing(queue: str) -> QueueMissing:
    return QueueMissing(f"no queue named {queue!r}")
