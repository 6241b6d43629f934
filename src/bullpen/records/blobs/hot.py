"""Copies of what lies in a bucket, in a folder of this machine, for as long as they are likely to be wanted."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from typing import IO

from bullpen.errors import BlobMissing, BlobsUnavailable
from bullpen.records.blobs.folder import FolderHome, now_ms
from bullpen.records.blobs.home import Found, Home

_PART = 1 << 20
_HOUR_MS = 3_600_000


class HotHome:
    """A bucket with copies before it. What is safe is what the bucket has: a copy may go at any time."""

    def __init__(self, durable: Home, copies: FolderHome, *, ttl_ms: int) -> None:
        self._durable = durable
        self._copies = copies
        self._ttl_ms = ttl_ms
        self._cooled_ms = 0

    def draft(self) -> IO[bytes]:
        return self._durable.draft()

    def drop(self, draft: IO[bytes]) -> None:
        self._durable.drop(draft)

    async def keep(self, draft: IO[bytes], name: str) -> None:
        await self._durable.keep(draft, name)
        await self._copy(draft, name)
        if now_ms() - self._cooled_ms > _HOUR_MS:
            await self.cool()

    async def _copy(self, draft: IO[bytes], name: str) -> None:
        copy: IO[bytes] | None = None
        try:
            copy = await asyncio.to_thread(self._copies.draft)
            draft.seek(0)
            await asyncio.to_thread(shutil.copyfileobj, draft, copy, _PART)
            await self._copies.keep(copy, name)
        except (BlobsUnavailable, OSError):
            pass  # it is safe already, and is only slower to read
        finally:
            if copy is not None:
                self._copies.drop(copy)

    async def stay(self, name: str) -> bool:
        return await self._durable.stay(name)

    async def read(self, name: str) -> AsyncIterator[bytes]:
        """From the copy. What is found damaged there is read again by `Blobs`, from the bucket."""
        begun = False
        try:
            async for part in self._copies.read(name):
                begun = True
                yield part
        except (BlobMissing, BlobsUnavailable):
            if begun:
                raise
            async for part in self._durable.read(name):
                yield part

    async def find(self, name: str) -> Found | None:
        return await self._durable.find(name)

    def all(self) -> AsyncIterator[Found]:
        return self._durable.all()

    async def remove(self, name: str) -> None:
        await self._copies.remove(name)
        await self._durable.remove(name)

    async def tidy(self, *, before_ms: int) -> None:
        await self._copies.tidy(before_ms=before_ms)
        await self._durable.tidy(before_ms=before_ms)
        await self.cool()

    async def cool(self) -> None:
        """Remove the copies whose time is over."""
        self._cooled_ms = now_ms()
        async for copy in self._copies.all():
            if copy.written_ms < self._cooled_ms - self._ttl_ms:
                await self._copies.remove(copy.name)

    async def forget_copy(self, name: str) -> None:
        await self._copies.remove(name)
