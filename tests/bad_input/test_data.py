"""Data that cannot be written, and payloads that cannot be read."""

import dataclasses
import zlib
from typing import Any

import pytest

from bullpen import BadData, CodecMissing, PayloadTooLarge, Queue, SqliteStore
from tests.bad_input.refusing import SURROGATE, refused

# ── data ─────────────────────────────────────────────────────────────────────────────────


def _endless() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "data, word",
    [
        (object(), "object"),
        ({"f": print}, "builtin_function"),
        ({(1, 2): 3}, "keys"),
        (SURROGATE, "surrogates"),
        (_endless(), "recursion"),
    ],
    ids=["object", "function", "tuple as key", "surrogate", "endless"],
)
async def test_data_that_is_not_json(queue: Queue, store: SqliteStore, data: Any, word: str) -> None:
    async with refused(store, BadData, "bad-data", "data cannot be written as JSON", word):
        await queue.add("mail", data)
    async with refused(store, BadData, "bad-data", "data cannot be written as JSON", word):
        await queue.job("kept").update_data(data)
    async with refused(store, BadData, "bad-data", "progress cannot be written as JSON", word):
        await queue.job("kept").set_progress(data)


async def test_data_that_would_be_read_as_a_codec_s(queue: Queue, store: SqliteStore) -> None:
    """It could be added and never be read."""
    async with refused(store, BadData, "bad-data", "data", "'$codec'"):
        await queue.add("mail", {"$codec": 1})
    await queue.add("mail", {"subject": 1, "$codec": 1})


@dataclasses.dataclass
class Price:
    amount: float


@pytest.mark.parametrize(
    "data, place",
    [
        (float("nan"), "data is"),
        ({"a": [1, {"b": float("nan")}]}, "data['a'][1]['b'] is"),
        ([None, (0, float("inf"))], "data[1][1] is"),
        ({"deep": {"er": -float("inf")}}, "data['deep']['er'] is"),
        ({"price": Price(float("nan"))}, "data['price'].amount is"),
    ],
)
async def test_nan_and_infinity_are_found_wherever_they_hide(
    queue: Queue, store: SqliteStore, data: Any, place: str
) -> None:
    """JSON has neither; to send null instead would lose them in silence."""
    async with refused(store, BadData, "bad-data", place):
        await queue.add("mail", data)


async def test_null_is_no_nan(queue: Queue) -> None:
    job = await queue.add("mail", {"a": None, "b": ["null", 1.5]})
    assert await job.data() == {"a": None, "b": ["null", 1.5]}


async def test_a_payload_that_is_too_large(queue: Queue, store: SqliteStore) -> None:
    words = ("data", "1,002 bytes", "1,000")
    async with refused(store, PayloadTooLarge, "payload-too-large", *words):
        await queue.add("mail", "x" * 1_000)
    async with refused(store, PayloadTooLarge, "payload-too-large", *words):
        await queue.job("kept").update_data("x" * 1_000)
    assert (await queue.add("mail", "x" * 998)).outcome == "added"


async def test_a_payload_is_measured_in_bytes(queue: Queue, store: SqliteStore) -> None:
    async with refused(store, PayloadTooLarge, "payload-too-large", "1,002 bytes"):
        await queue.add("mail", "ä" * 500)


# ── codecs ───────────────────────────────────────────────────────────────────────────────


class Zip:
    name = "zip"

    def encode(self, plain: bytes) -> bytes:
        return zlib.compress(plain)

    def decode(self, coded: bytes) -> bytes:
        return zlib.decompress(coded)


class OtherZip(Zip):
    name = "other-zip"


@pytest.mark.parametrize("codec", [None, OtherZip()], ids=["no codec", "another"])
async def test_a_payload_that_was_written_with_a_codec_we_do_not_have(
    queue: Queue, store: SqliteStore, codec: Zip | None
) -> None:
    """It is refused rather than read as nonsense, and stays for who can read it."""
    coded = await Queue(store, "work", codec=Zip()).add("secret", {"n": 7})
    async with refused(store, CodecMissing, "codec-missing", "data", "'zip'"):
        await Queue(store, "work", codec=codec).job(coded.id).data()
    assert await Queue(store, "work", codec=Zip()).job(coded.id).data() == {"n": 7}
