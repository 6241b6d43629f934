"""Blobs: by their digest, once, whole or not at all, wherever they lie."""

import asyncio
import hashlib
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bullpen import BadOption, BlobDamaged, BlobMissing, BlobsUnavailable
from bullpen.records.blobs.blobs import Blobs, blobs_at
from bullpen.records.blobs.folder import FolderHome
from tests.support.bucket_server import NO_BUCKET, Bucket

TEXT = b"the same line again and again\n" * 10_000
LARGE = os.urandom(3 << 20)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def _in_parts(data: bytes, size: int = 700_001) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def _read_into(given: list[bytes], parts: AsyncIterator[bytes]) -> None:
    async for part in parts:
        given += [part]


async def _names(blobs: Blobs) -> list[str]:
    return sorted([found.name async for found in blobs.all()])


@pytest.mark.parametrize("data", [b"", b"x", TEXT, LARGE], ids=["empty", "byte", "text", "noise"])
async def test_what_was_put_is_got_by_its_digest(blobs: Blobs, data: bytes) -> None:
    name = await blobs.put(data)
    assert name == _sha(data)
    assert await blobs.get(name) == data
    assert await blobs.has(name)


async def test_the_same_bytes_are_one_blob_however_they_came(blobs: Blobs) -> None:
    first = await blobs.put(LARGE)
    kept = await blobs.put_parts(_in_parts(LARGE))
    assert (kept.sha256, kept.size) == (first, len(LARGE))
    assert await _names(blobs) == [first]
    assert b"".join([part async for part in blobs.parts(first)]) == LARGE


async def test_many_are_listed_and_one_is_removed(blobs: Blobs) -> None:
    names = await asyncio.gather(*(blobs.put(b"blob %d" % n) for n in range(8)))
    assert await _names(blobs) == sorted(names)
    await blobs.remove(names[0])
    await blobs.remove(names[0])
    assert await _names(blobs) == sorted(names[1:])
    assert not await blobs.has(names[0])
    with pytest.raises(BlobMissing, match=names[0]):
        await blobs.get(names[0])


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "AB" * 32, "ab" * 31])
async def test_what_is_no_name_leads_nowhere(blobs: Blobs, name: str) -> None:
    with pytest.raises(BlobMissing):
        await blobs.get(name)


async def test_an_error_of_who_sends_leaves_nothing_behind(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield TEXT
        raise ConnectionError("gone")

    blobs = blobs_at(str(tmp_path / "blobs"))
    with pytest.raises(ConnectionError):
        await blobs.put_parts(broken())
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


async def test_text_takes_less_room_and_noise_no_more(tmp_path: Path) -> None:
    blobs = blobs_at(str(tmp_path))
    for data, most in ((TEXT, len(TEXT) // 10), (LARGE, len(LARGE) + 1)):
        found = await blobs.home.find(await blobs.put(data))
        assert found is not None
        assert found.stored_bytes <= most


def _spoilt(stored: bytes) -> list[bytes]:
    middle = len(stored) // 2
    flipped = bytes([stored[middle] ^ 1])
    return [stored[:middle] + flipped + stored[middle + 1 :], stored[:-3], b"", b"\x07" + stored[1:]]


@pytest.mark.parametrize("data", [TEXT, LARGE], ids=["text", "noise"])
@pytest.mark.parametrize("how", range(4), ids=["flipped", "cut", "empty", "foreign"])
async def test_a_damaged_blob_is_told_and_not_given(tmp_path: Path, data: bytes, how: int) -> None:
    blobs = blobs_at(str(tmp_path))
    name = await blobs.put(data)
    place = tmp_path / name[:2] / name[2:]
    place.write_bytes(_spoilt(place.read_bytes())[how])
    with pytest.raises(BlobDamaged, match=name):
        await blobs.get(name)
    given: list[bytes] = []
    with pytest.raises(BlobDamaged):
        await _read_into(given, blobs.parts(name))
    assert sum(map(len, given)) < len(data), "who reads to the end has not been given all of it"


async def test_a_damaged_copy_is_replaced_by_what_the_bucket_has(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blobs = blobs_at("s3://things")
    name = await blobs.put(TEXT)
    copy = tmp_path / ".bullpen" / "blobs" / name[:2] / name[2:]
    copy.write_bytes(b"\x00spoilt")
    assert await blobs.get(name) == TEXT
    assert not copy.exists()


async def test_a_copy_serves_while_the_bucket_is_away_and_goes_when_its_time_is_over(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blobs = blobs_at("s3://things")
    name = await blobs.put(TEXT)
    bucket.status = 403
    assert await blobs.get(name) == TEXT
    bucket.status = 0
    copy = tmp_path / ".bullpen" / "blobs" / name[:2] / name[2:]
    os.utime(copy, (1, 1))
    await blobs.home.tidy(before_ms=0)
    assert not copy.exists()
    assert await blobs.get(name) == TEXT, "the bucket has it"


async def test_a_large_blob_goes_up_in_parts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_BLOBS_HOT", "0")
    blobs = blobs_at("s3://things")
    data = os.urandom(9 << 20)
    name = await blobs.put(data)
    assert bucket.uploaded_in_parts == 1
    assert await blobs.get(name) == data


async def test_an_old_blob_is_written_again_so_that_it_is_young(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it might be removed as unnamed before its new owner has named it."""
    monkeypatch.setenv("BULLPEN_BLOBS_HOT", "0")
    blobs = blobs_at("s3://things/of")
    name = await blobs.put(TEXT)
    key = f"of/{name[:2]}/{name[2:]}"
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    bucket.age(key, long_ago)
    await blobs.put(TEXT)
    assert bucket.objects[key].written > long_ago


async def test_a_bucket_that_refuses_is_told_with_its_address(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone-else")
    with pytest.raises(BlobsUnavailable, match="s3://things"):
        await blobs_at("s3://things").put(b"x")


async def test_a_bucket_that_is_not_there_is_told(bucket: Bucket) -> None:
    with pytest.raises(BlobsUnavailable, match="no such bucket"):
        await blobs_at(f"s3://{NO_BUCKET}").put(b"x")


@pytest.mark.parametrize("address", ["http://somewhere/x", "s3://", "gs://bucket"])
def test_another_kind_of_address_is_refused(address: str) -> None:
    with pytest.raises(BadOption, match="BULLPEN_BLOBS"):
        blobs_at(address)


def test_a_wrong_time_for_copies_is_refused(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_BLOBS_HOT", "soon")
    with pytest.raises(BadOption, match="BULLPEN_BLOBS_HOT"):
        blobs_at("s3://things")


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BlobsUnavailable, match="file"):
        await blobs_at(str(tmp_path / "file")).put(b"x")


_DIES = """
    import asyncio, os, signal, sys
    from pathlib import Path
    from bullpen.records.blobs.blobs import blobs_at
    from bullpen.records.blobs import folder

    when = sys.argv[2]
    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)
    if when == "before the rename":
        Path.replace = die
    elif when == "before it is safe":
        folder.os.fsync = die
    else:
        folder._sync_folder = die
    asyncio.run(blobs_at(sys.argv[1]).put(b"precious " * 100_000))
"""


@pytest.mark.parametrize("when", ["before it is safe", "before the rename", "before the folder is safe"])
async def test_a_killed_writer_leaves_no_half_blob(tmp_path: Path, when: str) -> None:
    """There is all of it or nothing, its draft is tidied away, and the next one puts it as if nothing had been."""
    root = tmp_path / "blobs"
    program = [sys.executable, "-c", textwrap.dedent(_DIES), str(root), when]
    assert subprocess.run(program, check=False).returncode == -9
    blobs = blobs_at(str(root))
    data = b"precious " * 100_000
    for name in await _names(blobs):
        assert await blobs.get(name) == data
    assert await blobs.put(data) == _sha(data)
    assert await blobs.get(_sha(data)) == data
    assert isinstance(blobs.home, FolderHome)
    await blobs.home.tidy(before_ms=1 << 62)
    assert list((root / "drafts").iterdir()) == []
