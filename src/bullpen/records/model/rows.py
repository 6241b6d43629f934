"""A job as a row of the read model."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bullpen.deadletters.fingerprint import fingerprint_of
from bullpen.errors import BullpenError
from bullpen.job.record import JobRecord
from bullpen.job.state import FINISHED, State
from bullpen.queue.payload import from_bytes
from bullpen.records.model.words import words_of

_LONGEST_ERROR = 4_000
_LONGEST_FIELD = 500
_SIMPLE = (str, int, float, bool)

Values = dict[str, Any]


def values_of(job: JobRecord, fields: Sequence[str]) -> Values:
    """The columns that the job itself tells; `fields` are the names of the data's fields that may be kept."""
    failure = job.failure if job.state is not State.COMPLETED else None
    return {
        "queue": job.queue,
        "id": clean(job.id, 300),
        "state": job.state.value,
        "name": clean(job.name, 200),
        "tenant": None if job.tenant is None else clean(job.tenant, 200),
        "workspace": None if job.spec.workspace is None else clean(job.spec.workspace, 200),
        "tags": sorted({clean(tag, 200) for tag in job.spec.tags}),
        "fields": chosen_fields(job.data, fields) if fields else {},
        "priority": job.priority,
        "attempts_made": job.attempts_made,
        "error": None if failure is None else clean(failure.message, _LONGEST_ERROR),
        "error_kind": None if failure is None else failure.kind.value,
        "error_type": None if failure is None else clean(failure.type, 300),
        "fingerprint": fingerprint_of(job) if job.state is State.FAILED else None,
        "added_ms": job.added_ms,
        "run_at_ms": job.run_at_ms if job.state is State.DELAYED else None,
        "started_ms": job.started_ms,
        "finished_ms": job.finished_ms if job.state in FINISHED else None,
    }


def search_words(values: Mapping[str, Any]) -> str:
    texts = [values["id"], values["name"], *values["tags"], values["error"] or "", values["error_type"] or ""]
    texts += [str(value) for value in values["fields"].values()]
    return " ".join(words_of(texts))


def clean(text: str, longest: int) -> str:
    """What both databases can keep: PostgreSQL has no NUL and no lone surrogates."""
    if text.isascii() and "\0" not in text:
        return text[:longest]
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()[:longest]


def chosen_fields(data: bytes, fields: Sequence[str]) -> dict[str, Any]:
    """Of the data only what was asked for, and of that only simple values; nothing of what a codec hides."""
    try:
        value = from_bytes(data, what="data")
    except (BullpenError, msgspec.DecodeError):
        return {}
    if not isinstance(value, dict):
        return {}
    found = {name: value[name] for name in fields if isinstance(value.get(name), _SIMPLE)}
    return {name: clean(one, _LONGEST_FIELD) if isinstance(one, str) else one for name, one in found.items()}
