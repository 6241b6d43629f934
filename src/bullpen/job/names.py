"""What may be a name or an id, the same on every store.

The rules are those of BullMQ, because on Redis names and ids become parts of keys that
BullMQ reads; a queue that starts on SQLite must be able to move there.
"""

import re

from bullpen.errors import BadId, BadName

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_CANONICAL_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_RESERVED_IDS = frozenset(
    {
        "meta", "id", "wait", "paused", "active", "prioritized", "pc", "delayed", "waiting-children",
        "completed", "failed", "events", "marker", "stalled", "stalled-check", "limiter", "repeat",
    }
)  # fmt: skip
TICK = "repeat:"
"""What the id of every tick of a schedule begins with."""
_MAX_NAME = 200
MAX_ID = 300


def is_text(value: object) -> bool:
    """Whether this is a text that is not empty and that UTF-8 can carry."""
    if not isinstance(value, str) or not value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_queue_name(name: object) -> str:
    """Return a legal queue name, or raise BadName."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadName(f"queue name {name!r}: use letters, digits, '_', '.' and '-' only, at least one")
    if len(name) > _MAX_NAME:
        raise BadName(f"queue name is {len(name)} characters long; at most {_MAX_NAME}")
    return name


def check_schedule_id(schedule_id: object) -> str:
    """Return a legal schedule id, or raise BadName."""
    if not isinstance(schedule_id, str) or not _NAME.fullmatch(schedule_id):
        raise BadName(f"schedule {schedule_id!r}: use letters, digits, '_', '.' and '-' only, at least one")
    if len(schedule_id) > _MAX_NAME:
        raise BadName(f"schedule name is {len(schedule_id)} characters long; at most {_MAX_NAME}")
    return schedule_id


def check_job_name(name: object) -> str:
    """Return a legal job name, or raise BadName."""
    if not isinstance(name, str) or not is_text(name):
        raise BadName(f"job name {name!r}: use a text that is not empty, in Unicode without lone surrogates")
    if len(name) > _MAX_NAME:
        raise BadName(f"job name is {len(name)} characters long; at most {_MAX_NAME}")
    return name


def check_group_name(name: object) -> str:
    """Return a legal name of a group, or raise BadName."""
    if not isinstance(name, str) or not is_text(name):
        raise BadName(f"group {name!r}: use a text that is not empty, in Unicode without lone surrogates")
    if len(name) > _MAX_NAME:
        raise BadName(f"group is {len(name)} characters long; at most {_MAX_NAME}")
    return name


def check_explicit_id(job_id: object) -> str:
    """Return an id that a producer may choose, or raise BadId.

    Whole numbers are the store's own, and a colon separates the parts of a key.
    """
    if not isinstance(job_id, str) or not is_text(job_id):
        raise BadId(f"job id {job_id!r}: use a text that is not empty, in Unicode without lone surrogates")
    if len(job_id) > MAX_ID:
        raise BadId(f"job id is {len(job_id)} characters long; at most {MAX_ID}")
    if _CANONICAL_INTEGER.fullmatch(job_id):
        raise BadId(f"job id {job_id!r}: whole numbers are given by the store; add a letter")
    if job_id in _RESERVED_IDS:
        raise BadId(f"job id {job_id!r} is a reserved word")
    if job_id.startswith(TICK):
        raise BadId(f"job id {job_id!r}: ids that begin with {TICK!r} are those of schedules")
    if job_id.startswith("0:") or job_id.count(":") not in (0, 2):
        raise BadId(f"job id {job_id!r}: use no ':', or exactly two as in 'tenant:subject:reason'")
    return job_id


def is_generated_id(job_id: str) -> bool:
    """Whether the store made this id itself."""
    return _CANONICAL_INTEGER.fullmatch(job_id) is not None
