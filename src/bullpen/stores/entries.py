"""A journal's entry as stores keep it: what is known of the step, and apart from it its value, as it came."""

import msgspec

from bullpen.job.entries import JournalEntry

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JournalEntry).decode


def encode_head(entry: JournalEntry) -> bytes:
    return _encode(entry if entry.value is None else msgspec.structs.replace(entry, value=None))


def decode_entry(head: bytes | str, value: bytes | None) -> JournalEntry:
    entry = _decode(head)
    return entry if value is None else msgspec.structs.replace(entry, value=value)
