"""Cursors of streams of several queues: one text for the places in all their logs.

A caller gets places in queues whose names it may not know. A cursor calls a queue by a hash that is keyed with a secret
of the installation: a plain one would tell whoever guesses a name that there is such a queue.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping

import msgspec

from bullpen.errors import BadOption

SALT = "cursors"
"""By which name the records have the secret."""
_DIGITS = 16
_encode = msgspec.json.Encoder().encode
_decode_places = msgspec.json.Decoder(dict[str, str]).decode


class Cursors:
    """Writes and reads them, with a secret; others are refused, as it cannot tell what they leave out."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        # No queue has an empty name.
        self._mark = self._name_of("")

    def write(self, places: Mapping[str, str]) -> str:
        """The places in the logs of these queues."""
        named = {self._name_of(queue): place for queue, place in places.items()}
        return f"{self._mark}.{base64.urlsafe_b64encode(_encode(named)).decode()}"

    def read(self, cursor: str, queues: Iterable[str]) -> dict[str, str]:
        """The place in each of these queues, where the cursor has one; BadOption if no stream of ours gave it."""
        mark, _, text = cursor.partition(".")
        try:
            named = _decode_places(base64.urlsafe_b64decode(text.encode())) if mark == self._mark else None
        except (ValueError, msgspec.DecodeError):
            named = None
        if named is None:
            raise BadOption("after: is not a cursor that a stream of all queues gave")
        return {queue: named[name] for queue in queues if (name := self._name_of(queue)) in named}

    def _name_of(self, queue: str) -> str:
        return hmac.new(self._secret, queue.encode(), hashlib.sha256).hexdigest()[:_DIGITS]
