"""Durable steps: each job's journal, and the mailbox of signals that it has not asked for yet."""

from collections.abc import Sequence
from typing import Any

from bullpen.errors import LeaseLost, MailboxFull, WrongState
from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.record import JobRef
from bullpen.job.words import storable
from bullpen.stores.base import MAX_SIGNALS, REQUEST_MEMORY_MS, Delivery
from bullpen.stores.entries import decode_entry, encode_head
from bullpen.stores.redis import scripts
from bullpen.stores.redis.asking import Message, as_text, encode
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.site import MISSING, Site
from bullpen.stores.redis.steering import job_missing, refusal


async def append(site: Site, ref: JobRef, entries: Sequence[JournalEntry], epoch: int) -> list[JournalEntry]:
    return [decode_entry(*found) for found in await _append(site, ref, entries, epoch)]


async def receive(site: Site, ref: JobRef, entry: JournalEntry, epoch: int) -> JournalEntry | None:
    found = await _append(site, ref, [entry], epoch, receive=entry.name)
    return None if found == b"none" else decode_entry(*found[0])


async def _append(
    site: Site, ref: JobRef, entries: Sequence[JournalEntry], epoch: int, receive: str | None = None
) -> Any:
    message = _job(site.keys, ref) | {
        "now": site.clock.now_ms(),
        "epoch": epoch,
        "entries": [_entry(entry) for entry in entries],
    }
    if receive is not None:
        message["receive"] = storable(receive)
    found = await site.connection.run(scripts.APPEND_JOURNAL, site.keys.meta(ref.queue), encode(message))
    if found == b"lost":
        raise LeaseLost(f"job {ref.id!r} of queue {ref.queue!r} is no longer in its activation {epoch}")
    return found


async def read(site: Site, ref: JobRef, start: int, limit: int) -> JournalPage:
    answer = await site.ask(scripts.READ_JOURNAL, ref.queue, ref.id, str(start), str(limit))
    if answer == MISSING:
        raise job_missing(ref)
    places, found = answer
    entries = tuple(decode_entry(head, value) for head, value in found)
    return JournalPage(entries, start + limit if places > start + limit else None)


async def fork(site: Site, ref: JobRef, at: int, to: JobRef) -> int:
    keys = site.keys
    message = encode({"now": site.clock.now_ms(), "at": at, "from": _job(keys, ref), "to": _job(keys, to)})
    answer = await site.connection.run(scripts.FORK_JOURNAL, keys.meta(ref.queue), message)
    match answer:
        case b"missing":
            raise job_missing(ref)
        case b"missing target":
            raise job_missing(to)
        case b"refused":
            raise WrongState(f"job {to.id!r} of queue {to.queue!r} runs, has ended, or has a journal of its own")
    return int(answer)


async def forget(site: Site, ref: JobRef) -> None:
    word = await site.ask(scripts.FORGET_JOURNAL, ref.queue, ref.id)
    if word != b"done":
        raise refusal(ref, word, "to lose its journal")


async def signal(site: Site, ref: JobRef, name: str, payload: bytes, request: str) -> Delivery:
    message = _job(site.keys, ref) | {
        "now": site.clock.now_ms(),
        "memory_ms": REQUEST_MEMORY_MS,
        "limit": MAX_SIGNALS,
        "name": storable(name),
        "payload": as_text(payload, name),
    }
    word = await site.connection.run(scripts.SIGNAL, site.keys.request(request), encode(message))
    if word in (b"woken", b"kept"):
        return Delivery(word.decode())
    if word == b"full":
        raise MailboxFull(
            f"{MAX_SIGNALS} signals wait for job {ref.id!r} of queue {ref.queue!r}; it does not take them"
        )
    raise refusal(ref, word, "to be signalled")


def _job(keys: Keys, ref: JobRef) -> Message:
    return {"base": keys.base(ref.queue), "own": keys.own(ref.queue), "id": ref.id}


def _entry(entry: JournalEntry) -> Message:
    message: Message = {"place": entry.place, "state": entry.state, "head": encode_head(entry).decode()}
    if entry.value is not None:
        message["value"] = as_text(entry.value, entry.name)
    return message
