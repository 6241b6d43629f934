"""A job as a row of the read model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bullpen.deadletters.fingerprint import fingerprint_of
from bullpen.errors import BullpenError
from bullpen.job.record import JobRecord
from bullpen.job.state import FINISHED, State
from bullpen.queue.payload import from_bytes
from bullpen.records.model.words import FAILED_WORD, queue_word, tenant_word, words_of

_LONGEST_ERROR = 4_000
_LONGEST_FIELD = 500
_SIMPLE = (str, int, float, bool)

_encode = msgspec.json.Encoder().encode
_decode_tags = msgspec.json.Decoder(list[str]).decode

Values = dict[str, Any]
"""Of a row, each as it is stored: `tags` and `fields` are JSON."""
NO_TAGS, NO_FIELDS = "[]", "{}"


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
        "tags": as_json(sorted({clean(tag, 200) for tag in job.spec.tags})) if job.spec.tags else NO_TAGS,
        "fields": json.dumps(chosen_fields(job.data, fields)) if fields else NO_FIELDS,
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
    texts = [values["id"], values["name"], *tags_of(values), values["error"] or "", values["error_type"] or ""]
    if values["fields"] != NO_FIELDS:
        texts += [str(value) for value in json.loads(values["fields"]).values()]
    words = words_of(texts)
    words.append(queue_word(values["queue"]))
    if values["tenant"] is not None:
        words.append(tenant_word(values["tenant"]))
    if values["state"] == State.FAILED:
        words.append(FAILED_WORD)
    return " ".join(words)


def tags_of(values: Mapping[str, Any]) -> list[str]:
    return [] if values["tags"] == NO_TAGS else _decode_tags(values["tags"])


def as_json(value: object) -> str:
    return _encode(value).decode()


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
