"""What the scripts are asked, as msgpack: a batch with each of its queues named once.

All bytes travel as text, since the server's msgpack reads no other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from bullpen.errors import BadData
from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind, JobRef, Lease
from bullpen.job.spec import NewJob
from bullpen.job.trees import flatten
from bullpen.job.verdicts import (
    AwaitChildren,
    Cancelled,
    Completed,
    Failed,
    Limited,
    Parked,
    Postponed,
    Released,
    Retry,
    Settlement,
)
from bullpen.job.words import storable
from bullpen.stores.base import FOREVER_MS, REQUEST_MEMORY_MS
from bullpen.stores.redis.codec import encode_options, flag_of
from bullpen.stores.redis.keys import Keys

Message = dict[str, Any]
"""A Lua table to be; what is None there is not there."""

_BY_ATTEMPTS = frozenset({FailureKind.ERROR, FailureKind.TIMEOUT, FailureKind.UNRECOVERABLE})
"""Failures that attempts were spent on; the others came from outside."""

encode = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode


class LeaseTerms(msgspec.Struct, frozen=True):
    """Under which token, for whom and for how long jobs are claimed."""

    token: str
    worker: str
    ms: int


class ClaimBounds(msgspec.Struct, frozen=True):
    at_most: int | None = None
    """Of all queues together."""
    group: str | None = None
    """The only one to take jobs of."""


class Moment(msgspec.Struct, frozen=True):
    """When a call takes place: at a time of ours, or whenever the server runs it."""

    now: int | None = None
    ahead: int | None = None
    """How many milliseconds our clock is before the server's."""


class Batch:
    """Gathers the queues of one call; the scripts know each by its number, from 1."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._numbers: dict[str, int] = {}

    def number(self, queue: str) -> int:
        return self._numbers.setdefault(queue, len(self._numbers) + 1)

    def queues(self) -> list[Message]:
        return [{"base": self._keys.base(queue), "own": self._keys.own(queue)} for queue in self._numbers]

    def job(self, job: NewJob) -> Message:
        """One job by itself."""
        return self._kind(job) | {"data": as_text(job.data, job.name)}

    def jobs(self, jobs: Sequence[NewJob]) -> Message:
        """These with all below them, each parent before its children, which name its place, from 1.

        As columns: jobs that differ by their data only are of one kind, which the server reads once.
        """
        kinds: list[Message] = []
        known: dict[object, int] = {}
        kind_of, data = [], []
        for job, parent in _with_parents(jobs):
            # One with an id, a parent or children is alike to no other.
            is_like_others = job.id is None and parent is None and not job.children
            likeness = (job.queue, job.name, id(job.spec)) if is_like_others else object()
            if likeness not in known:
                kinds.append(self._kind(job) if parent is None else self._kind(job) | {"parent": parent + 1})
                known[likeness] = len(kinds)
            kind_of.append(known[likeness])
            data.append(as_text(job.data, job.name))
        return {"kinds": kinds, "kind_of": kind_of, "data": data}

    def _kind(self, job: NewJob) -> Message:
        spec = job.spec
        message: Message = {
            "queue": self.number(job.queue),
            "name": job.name,
            "options": encode_options(job).decode(),
        }
        if spec.delay_ms:
            message["delay"] = spec.delay_ms
        if spec.priority:
            message["priority"] = spec.priority
        if job.id is not None:
            message["id"] = job.id
        if job.children:
            message["has_children"] = True
        if spec.on_failure is not None:
            message["policy"] = flag_of(spec.on_failure)
        if spec.lifo:
            message["lifo"] = True
        if spec.tenant is not None:
            message["tenant"] = spec.tenant
        if spec.group is not None:
            message["group"] = spec.group
        if spec.start_by_ms is not None:
            message["start_by"] = spec.start_by_ms
        if (dedup := spec.dedup) is not None:
            message["dedup"] = {
                "id": dedup.id,
                "ttl": dedup.ttl_ms,
                "extend": dedup.extend,
                "replace": dedup.replace,
                "keep_last": dedup.keep_last_if_active,
            }
        return message

    def lease(self, lease: Lease) -> Message:
        ref = lease.ref
        return {"queue": self.number(ref.queue), "id": ref.id, "token": lease.token, "epoch": lease.epoch}

    def settlements(self, settlements: Sequence[Settlement]) -> Message:
        """As columns: the server reads them in half the time that a table of each would take."""
        leases = [settlement.lease for settlement in settlements]
        told = [self._verdict(settlement) for settlement in settlements]
        return {
            "queues": [self.number(lease.ref.queue) for lease in leases],
            "ids": [lease.ref.id for lease in leases],
            "tokens": [lease.token for lease in leases],
            "epochs": [lease.epoch for lease in leases],
            "words": [word for word, _ in told],
            "said": [said for _, said in told],
        }

    def _verdict(self, settlement: Settlement) -> tuple[str, str | Message]:
        match settlement.verdict:
            case Completed(result, then):
                text = as_text(result, settlement.lease.ref)
                if then:
                    return "completed-then", {"result": text, "followers": self.jobs(then)}
                return "completed", text
            case Retry(failure, delay_ms):
                return "retry", {"failure": _failure(failure), "delay": delay_ms}
            case Failed(failure):
                return "failed", {"failure": _failure(failure)}
            case Cancelled(reason):
                message = f"cancelled: {reason}" if reason else "cancelled"
                return "failed", {"failure": _failure(Failure(message, FailureKind.CANCELLED))}
            case Postponed(delay_ms, note):
                return "postponed", {"delay": delay_ms, "note": storable(note)}
            case Parked(until_ms, signals, note):
                return "parked", {
                    "due": FOREVER_MS if until_ms is None else until_ms,
                    "signals": signals,
                    "parked": _encode_json(signals).decode(),
                    "note": storable(note),
                }
            case Released(crash, limits):
                return "released", {"crash": crash, "limits": limits}
            case Limited(delay_ms, group_only):
                return "limited", {"delay": delay_ms, "group_only": group_only}
            case AwaitChildren():
                return "await-children", {}
            case unknown:
                assert_never(unknown)


def _with_parents(jobs: Sequence[NewJob]) -> Iterator[tuple[NewJob, int | None]]:
    if any(job.children for job in jobs):
        return ((node.job, node.parent) for node in flatten(jobs))
    return ((job, None) for job in jobs)


def ask_add(keys: Keys, jobs: Sequence[NewJob], now_ms: int) -> bytes:
    batch = Batch(keys)
    asked = _asked_add(batch, jobs, now_ms)
    if any(job.children for job in jobs):
        asked["has_trees"] = True
    if any("group" in kind for kind in asked["jobs"]["kinds"]):
        asked["has_groups"] = True
    return encode(asked)


def ask_add_children(keys: Keys, lease: Lease, jobs: Sequence[NewJob], now_ms: int) -> bytes:
    batch = Batch(keys)
    return encode(_asked_add(batch, jobs, now_ms) | {"lease": batch.lease(lease), "queues": batch.queues()})


def _asked_add(batch: Batch, jobs: Sequence[NewJob], now_ms: int) -> Message:
    columns = batch.jobs(jobs)
    counts = Counter(columns["kinds"][kind - 1]["queue"] for kind in columns["kind_of"])
    return {
        "now": now_ms,
        "memory_ms": REQUEST_MEMORY_MS,
        "queues": batch.queues(),
        "counts": [counts[number] for number in sorted(counts)],
        "jobs": columns,
    }


def ask_exchange(
    keys: Keys,
    settlements: Sequence[Settlement],
    wants: Mapping[str, int],
    terms: LeaseTerms,
    moment: Moment,
    bounds: ClaimBounds,
) -> bytes:
    batch = Batch(keys)
    ended = batch.settlements(settlements)
    wanted = [{"queue": batch.number(queue), "count": count} for queue, count in wants.items()]
    message = {
        "memory_ms": max(terms.ms, REQUEST_MEMORY_MS),
        "queues": batch.queues(),
        "ended": ended,
        "wants": wanted,
        "lease": {
            "token": terms.token,
            "worker": terms.worker,
            "ms": terms.ms,
            "queues": keys.worker_queues(terms.worker),
        },
    }
    said = {"now": moment.now, "ahead": moment.ahead, "at_most": bounds.at_most, "group": bounds.group}
    return encode(message | {name: value for name, value in said.items() if value is not None})


def ask_renew(keys: Keys, leases: Sequence[Lease], lease_ms: int) -> bytes:
    batch = Batch(keys)
    held = [batch.lease(lease) for lease in leases]
    return encode({"lease_ms": lease_ms, "queues": batch.queues(), "leases": held})


def ask_abandon(now_ms: int) -> bytes:
    return encode({"now": now_ms, "memory_ms": REQUEST_MEMORY_MS})


def ask_rescue(
    keys: Keys, queues: Iterable[str], limits: CrashLimits, crash: CrashKind, worker: str | None, now_ms: int
) -> bytes:
    batch = Batch(keys)
    for queue in queues:
        batch.number(queue)
    message = {"now": now_ms, "queues": batch.queues(), "limits": limits, "crash": crash}
    return encode(message if worker is None else message | {"worker": worker})


def ask_cancel(keys: Keys, ref: JobRef, reason: str, now_ms: int) -> bytes:
    return encode(
        {
            "now": now_ms,
            "base": keys.base(ref.queue),
            "own": keys.own(ref.queue),
            "id": ref.id,
            "reason": storable(reason),
            "worker": keys.worker,
        }
    )


def ask_runnable(keys: Keys, queues: Iterable[str], now_ms: int) -> bytes:
    batch = Batch(keys)
    for queue in queues:
        batch.number(queue)
    return encode({"now": now_ms, "queues": batch.queues()})


def failure_details(failure: Failure) -> str:
    """What BullMQ has no words for."""
    details = {"kind": failure.kind, "type": failure.type}
    return _encode_json({name: value for name, value in details.items() if value}).decode()


def _failure(failure: Failure) -> Message:
    message: Message = {"message": storable(failure.message), "details": failure_details(failure)}
    if failure.stack:
        message["stack"] = storable(failure.stack)
    if failure.kind in _BY_ATTEMPTS:
        message["is_by_attempts"] = True
    return message


def as_text(json: bytes, whose: object) -> str:
    try:
        return json.decode()
    except UnicodeDecodeError as error:
        raise BadData(f"{whose}: JSON is UTF-8, and this is not: {error}") from error
