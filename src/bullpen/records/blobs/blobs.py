"""The front door to blobs."""

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import NamedTuple

from bullpen.errors import BadOption, BlobDamaged
from bullpen.records.blobs.draft import Draft, unpacked
from bullpen.records.blobs.folder import FolderHome
from bullpen.records.blobs.home import Found, Home, check_name
from bullpen.records.blobs.hot import HotHome
from bullpen.settings import told

BLOBS = "BULLPEN_BLOBS"
HOT = "BULLPEN_BLOBS_HOT"
DEFAULT_BLOBS = ".bullpen/blobs"
_DAY_S = 86_400
_BUCKET = "s3://"


class Kept(NamedTuple):
    """A blob, by what it holds."""

    sha256: str
    size: int


class Blobs:
    """Bytes by their SHA-256: the same bytes are kept once, and what is read is what was written.

    A blob that nobody names any more is removed by `records.files.expire`, not by who put it.
    """

    def __init__(self, home: Home) -> None:
        self.home = home

    async def put(self, data: bytes) -> str:
        """Keep these; their name. Safe when it returns."""

        async def whole() -> AsyncIterator[bytes]:
            yield data

        return (await self.put_parts(whole())).sha256

    async def put_parts(self, parts: AsyncIterable[bytes]) -> Kept:
        """The same in parts, of which few are in memory at once. An error of `parts` leaves nothing behind."""
        async with self.drafting() as draft:
            async for part in parts:
                await asyncio.to_thread(draft.write, part)
            return await self.keep(draft)

    @contextlib.asynccontextmanager
    async def drafting(self) -> AsyncIterator[Draft]:
        """A draft for the length of a block: written to in threads, then given to `keep`, or dropped."""
        draft = await asyncio.to_thread(self.open_draft)
        try:
            yield draft
        finally:
            await asyncio.to_thread(self.drop, draft)

    def open_draft(self) -> Draft:
        """For who writes in a thread of their own; `drop` it at the end, kept or not."""
        return Draft(self.home.draft())

    def drop(self, draft: Draft) -> None:
        self.home.drop(draft.file)

    async def keep(self, draft: Draft) -> Kept:
        """What was written is a blob from now on."""
        name = await asyncio.to_thread(draft.finish)
        if not await self.home.stay(name):
            await self.home.keep(draft.file, name)
        return Kept(name, draft.size)

    async def get(self, name: str) -> bytes:
        """All of it. BlobMissing; BlobDamaged if it is no longer what was put."""
        try:
            return b"".join([part async for part in self.parts(name)])
        except BlobDamaged:
            if not isinstance(self.home, HotHome):
                raise
            await self.home.forget_copy(name)  # the bucket may have it whole
            return b"".join([part async for part in self.parts(name)])

    def parts(self, name: str) -> AsyncIterator[bytes]:
        """The same in parts. The last comes only after all were checked: who got it has the whole."""
        return unpacked(check_name(name), self.home.read(name))

    async def has(self, name: str) -> bool:
        return await self.home.find(check_name(name)) is not None

    async def remove(self, name: str) -> None:
        """Whoever names it will miss it. Nothing happens if it is not there."""
        await self.home.remove(check_name(name))

    def all(self) -> AsyncIterator[Found]:
        return self.home.all()


def blobs_at(address: str | None = None) -> Blobs:
    """Those in a folder or at `s3://BUCKET/PREFIX`; without an address `BULLPEN_BLOBS` says where.

    Nothing is made or asked before the first of them is put.
    """
    address = address or told(BLOBS) or DEFAULT_BLOBS
    if not address.startswith(_BUCKET):
        if "://" in address:
            raise BadOption(f"{BLOBS}: a folder, or s3://BUCKET/PREFIX, not {address!r}")
        return Blobs(FolderHome(Path(address)))
    from bullpen.records.blobs.bucket import BucketHome

    bucket, _, prefix = address.removeprefix(_BUCKET).partition("/")
    durable = BucketHome(bucket, prefix)
    seconds = _hot_seconds()
    if not seconds:
        return Blobs(durable)
    return Blobs(HotHome(durable, FolderHome(Path(DEFAULT_BLOBS)), ttl_ms=seconds * 1000))


def _hot_seconds() -> int:
    said = told(HOT)
    if said is None:
        return _DAY_S
    if not (said.isascii() and said.isdecimal()):
        raise BadOption(f"{HOT}: whole seconds, 0 for no copies, not {said!r}")
    return int(said)
