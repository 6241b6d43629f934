"""Payloads at rest: plain JSON for any reader, or coded for those who have the codec."""

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen import BadData, Codec, Queue
from bullpen.job.verdicts import Completed
from bullpen.queue.payload import from_bytes, to_bytes
from tests.queue.working import WatchedStore, claim, complete_next, settle
from tests.support.places import Place


class Zip:
    name = "zip"

    def encode(self, plain: bytes) -> bytes:
        return zlib.compress(plain)

    def decode(self, coded: bytes) -> bytes:
        return zlib.decompress(coded)


class ToyCipher:
    """Shows that a codec may hold a key; it hides nothing from anyone who tries."""

    name = "toy-cipher"

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encode(self, plain: bytes) -> bytes:
        return bytes(byte ^ self._key[n % len(self._key)] for n, byte in enumerate(plain))

    decode = encode


CODECS: list[Codec] = [Zip(), ToyCipher(b"secret key")]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
async def test_a_codec_s_data_comes_back_and_is_not_to_be_read_meanwhile(
    store: WatchedStore, place: Place, codec: Codec
) -> None:
    queue = Queue(store, "work", codec=codec)
    job = await queue.add("mail", {"to": "ada@example.com"})
    await job.update_data({"to": "ada@example.com", "again": True})
    assert await job.data() == {"to": "ada@example.com", "again": True}
    stored = place.data_at_rest(job.ref)
    assert b"ada" not in stored
    envelope = json.loads(stored)
    assert envelope.keys() == {"$codec", "body"}
    assert envelope["$codec"] == codec.name
    assert json.loads(codec.decode(base64.b64decode(envelope["body"]))) == {"to": "ada@example.com", "again": True}


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
async def test_a_codec_s_result_comes_back(store: WatchedStore, codec: Codec) -> None:
    queue = Queue(store, "work", codec=codec)
    job = await queue.add("mail")
    await complete_next(store, to_bytes({"sum": 42}, what="result", codec=codec))
    assert await job.result(60) == {"sum": 42}


async def test_a_queue_with_a_codec_reads_what_was_written_before_it_had_one(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("mail", {"n": 1})
    assert await Queue(store, "work", codec=Zip()).job(job.id).data() == {"n": 1}


async def test_the_limit_is_on_what_was_said_not_on_what_is_stored(store: WatchedStore) -> None:
    queue = Queue(store, "work", codec=ToyCipher(b"k"), max_payload_bytes=100)
    assert await (await queue.add("mail", "x" * 98)).data() == "x" * 98


async def test_data_without_a_codec_is_plain_json(queue: Queue, place: Place) -> None:
    """A reader in another language needs nothing but a JSON parser."""
    job = await queue.add("mail", {"to": "Zoë", "n": 1.5, "list": [None, True], "emoji": "🐂"})
    stored = place.data_at_rest(job.ref)
    assert stored.decode() == '{"to":"Zoë","n":1.5,"list":[null,true],"emoji":"🐂"}'
    assert json.loads(stored) == {"to": "Zoë", "n": 1.5, "list": [None, True], "emoji": "🐂"}


async def test_a_worker_gets_the_bytes_as_they_were_stored(queue: Queue, store: WatchedStore) -> None:
    await queue.add("mail", {"n": 1})
    (claimed,) = await claim(store)
    assert claimed.job.data == b'{"n":1}'
    await settle(store, claimed, Completed())


@pytest.mark.parametrize("stored", [b"", b"nonsense", b'{"a":', b'{"$codec":5}', b"\xff"])
def test_stored_bytes_that_are_no_json_are_told_as_such(stored: bytes) -> None:
    with pytest.raises(BadData, match="data is not JSON"):
        from_bytes(stored, what="data")


@given(value=JSON)
def test_any_json_comes_back_as_it_was(value: object) -> None:
    assert from_bytes(to_bytes(value, what="data"), what="data") == value
    assert json.loads(to_bytes(value, what="data")) == value
    for codec in CODECS:
        assert from_bytes(to_bytes(value, what="data", codec=codec), what="data", codec=codec) == value
