"""Cursors of streams of several queues: one text for the places in all their logs.

A caller gets places in queues whose names it may not know, and may not learn how busy they are. So a cursor is
encrypted with a secret of the installation, and for a caller that knows only some of the queues its length does not
depend on the others.
"""

import base64
import hashlib
import hmac
import itertools
import zlib
from collections.abc import Collection, Iterable, Mapping

import msgspec
from cryptography.fernet import Fernet, InvalidToken

from bullpen.errors import BadOption

SALT = "cursors"
"""By which name the records have the secret."""
LONGEST = 32_000
"""Characters that a cursor may have; a line of a request to uvicorn has twice as many."""
_ROOM = 4_000
"""Bytes for a caller that knows only some of the queues, and once more if those alone need them: some 300 queues."""
_MOST = 5 * _ROOM
"""Less than the longest when it is encrypted and text: some 1,500 queues."""
_DIGEST = 6
_SIZE = 4
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode
_decode_places = msgspec.msgpack.Decoder(list[str]).decode

_Places = dict[bytes, str]


class Cursors:
    """Writes and reads them, with a secret; others are refused, as it cannot tell what they leave out."""

    def __init__(self, secret: bytes) -> None:
        key = hmac.digest(secret, b"encryption of cursors", hashlib.sha256)
        self._fernet = Fernet(base64.urlsafe_b64encode(key))

    def write(self, places: Mapping[str, str], known: Collection[str] | None = None) -> str:
        """The places in the logs of these queues; the caller may learn of those that are `known`, or else of all.

        Of more queues than there is room for some are left out.
        """
        if known is None:
            packed = _packed(_named(places), _MOST)
        else:
            own = _named({queue: place for queue, place in places.items() if queue in known})
            room = min(_MOST, (len(_pack(own)) // _ROOM + 1) * _ROOM)
            packed = _packed(own | _named(places), room).ljust(room, b"\0")
        return self._fernet.encrypt(packed).decode()

    def read(self, cursor: str, queues: Iterable[str]) -> dict[str, str]:
        """The place in each of these queues, where the cursor has one; BadOption if no stream of ours gave it."""
        try:
            packed = self._fernet.decrypt(cursor)
        except (InvalidToken, ValueError):
            raise BadOption("after: is not a cursor that a stream of all queues gave") from None
        named = _unpacked(packed)
        return {queue: named[name] for queue in queues if (name := _name_of(queue)) in named}


def _packed(places: _Places, room: int) -> bytes:
    """As many as there is room for, the first of them."""
    most = room // _DIGEST
    while True:
        packed = _pack(dict(itertools.islice(places.items(), most)))
        if len(packed) <= room:
            return packed
        most = min(most, len(places)) * 9 // 10


def _pack(places: _Places) -> bytes:
    # Only the places are compressed: digests are noise.
    packed = _encode((b"".join(places), zlib.compress(_encode(list(places.values())))))
    return len(packed).to_bytes(_SIZE) + packed


def _unpacked(packed: bytes) -> _Places:
    names, places = _decode(packed[_SIZE : _SIZE + int.from_bytes(packed[:_SIZE])])
    digests = (names[start : start + _DIGEST] for start in range(0, len(names), _DIGEST))
    return dict(zip(digests, _decode_places(zlib.decompress(places)), strict=True))


def _named(places: Mapping[str, str]) -> _Places:
    return {_name_of(queue): place for queue, place in places.items()}


def _name_of(queue: str) -> bytes:
    """Short, whatever the name is; of a thousand queues two are mistaken for each other once in 500 million times."""
    return hashlib.blake2b(queue.encode(), digest_size=_DIGEST).digest()
