"""What durable steps left of jobs, packed for another store, and unpacked where they arrive."""

from collections.abc import Sequence

from bullpen.job.entries import JournalEntry
from bullpen.job.words import storable
from bullpen.stores.entries import decode_entry, encode_head
from bullpen.stores.moving import SavedJob, Signal
from bullpen.stores.redis.asking import Message, as_text
from bullpen.stores.redis.keys import LAYOUT

_PLACES, _VALUE = LAYOUT["places"], LAYOUT["value"]


# ── out ──────────────────────────────────────────────────────────────────────────────────


def journal(flat: Sequence[bytes]) -> tuple[JournalEntry, ...]:
    """The entries of a stored journal, by place."""
    fields = {field.decode(): text for field, text in zip(flat[::2], flat[1::2], strict=True)}
    places = sorted(int(field) for field in fields if field.isdecimal())
    return tuple(_entry(fields[str(place)], fields.get(f"{place}{_VALUE}")) for place in places)


def _entry(stored: bytes, value: bytes | None) -> JournalEntry:
    _, _, head = stored.partition(b" ")
    return decode_entry(head, value)


def signals(found: Sequence[Sequence[bytes]]) -> tuple[Signal, ...]:
    return tuple(Signal(name.decode(), payload) for name, payload in found)


# ── in ───────────────────────────────────────────────────────────────────────────────────


def steps(job: SavedJob) -> Message:
    """What `restore` makes them again from; most jobs have none."""
    message: Message = {}
    if job.journal:
        message["journal"] = _journal_fields(job.journal)
    if job.signals:
        message["signals"] = [(storable(one.name), as_text(one.payload, job.id)) for one in job.signals]
    return message


def _journal_fields(entries: Sequence[JournalEntry]) -> list[str]:
    fields = [_PLACES, str(max(entry.place for entry in entries) + 1)]
    for entry in entries:
        fields += [str(entry.place), f"{entry.state} {encode_head(entry).decode()}"]
        if entry.value is not None:
            fields += [f"{entry.place}{_VALUE}", as_text(entry.value, entry.name)]
    return fields
