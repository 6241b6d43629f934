"""Payloads as bytes: strict JSON, a size limit, and a codec hook for encryption or compression.

With a codec the stored JSON is an envelope, `{"$codec": "<name>", "body": "<base64>"}`: any
reader sees that it cannot read it, instead of reading nonsense.
"""

import base64
import math
from typing import Any, Protocol

import msgspec

from bullpen.errors import BadData, CodecMissing, PayloadTooLarge

MAX_PAYLOAD_BYTES = 262_144

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_MARK = b'{"$codec":'


class Codec(Protocol):
    """Turns the JSON of data and results into other bytes and back."""

    @property
    def name(self) -> str:
        """Kept beside the bytes; a reader without the codec of this name refuses them."""

    def encode(self, plain: bytes) -> bytes: ...

    def decode(self, coded: bytes) -> bytes: ...


class _Envelope(msgspec.Struct):
    codec: str = msgspec.field(name="$codec")
    body: str


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


def to_bytes(value: Any, *, what: str, codec: Codec | None = None, limit: int = MAX_PAYLOAD_BYTES) -> bytes:
    """The value as JSON; BadData or PayloadTooLarge name what it is that cannot be sent."""
    if value is None and codec is None:
        return b"null"
    try:
        plain = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadData(f"{what} cannot be written as JSON: {error}") from error
    # The encoder writes NaN and Infinity as null, which would lose them in silence.
    # Not `in`: on bytes, Python 3.11 first asks for a number, and makes and drops an error each time.
    if plain.find(b"null") >= 0 and (where := _find_nan(value, what)):
        raise BadData(f"{where} is NaN or infinite, which JSON cannot carry")
    if len(plain) > limit:
        raise PayloadTooLarge(
            f"{what} is {len(plain):,} bytes as JSON; at most {limit:,} are allowed: store it elsewhere and send its id"
        )
    if codec is None:
        if plain.startswith(_MARK):
            raise BadData(f"{what} begins with the key '$codec', which marks what a codec wrote; use another key")
        return plain
    return _encode(_Envelope(codec.name, base64.b64encode(codec.encode(plain)).decode()))


def from_bytes(stored: bytes | None, *, what: str, codec: Codec | None = None) -> Any:
    """The value again; CodecMissing if it was written with a codec that we do not have."""
    if stored is None:
        return None
    try:
        if stored.startswith(_MARK):
            stored = _open_envelope(_decode_envelope(stored), what, codec)
        return _decode(stored)
    except msgspec.DecodeError as error:
        raise BadData(f"{what} is not JSON: {error}") from error


def _open_envelope(envelope: _Envelope, what: str, codec: Codec | None) -> bytes:
    if codec is None or codec.name != envelope.codec:
        raise CodecMissing(f"{what} was written with the codec {envelope.codec!r}, which was not given here")
    return codec.decode(base64.b64decode(envelope.body))


def _find_nan(value: Any, where: str) -> str | None:
    if isinstance(value, float):
        return where if not math.isfinite(value) else None
    if isinstance(value, dict):
        parts = [(f"{where}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [(f"{where}[{n}]", part) for n, part in enumerate(value)]
    elif hasattr(value, "__struct_fields__") or hasattr(value, "__dataclass_fields__"):
        fields = getattr(value, "__struct_fields__", None) or tuple(value.__dataclass_fields__)
        parts = [(f"{where}.{field}", getattr(value, field)) for field in fields]
    else:
        return None
    return next((found for place, part in parts if (found := _find_nan(part, place))), None)
