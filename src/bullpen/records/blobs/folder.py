"""Blobs in a folder: `ab/cdef…`, each written beside and renamed, so that half of one is never seen."""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from bullpen.errors import BlobMissing, BlobsUnavailable
from bullpen.records.blobs.home import Found, check_name

T = TypeVar("T")

_PART = 1 << 20
_DRAFTS = "drafts"


class FolderHome:
    """Several processes of a machine may share it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def draft(self) -> IO[bytes]:
        try:
            drafts = self.root / _DRAFTS
            drafts.mkdir(parents=True, exist_ok=True)
            return tempfile.NamedTemporaryFile(dir=drafts, delete=False)
        except OSError as error:
            raise self._unavailable(error) from error

    def drop(self, draft: IO[bytes]) -> None:
        draft.close()
        Path(draft.name).unlink(missing_ok=True)

    async def keep(self, draft: IO[bytes], name: str) -> None:
        await self._do(lambda: self._keep(draft, name))

    def _keep(self, draft: IO[bytes], name: str) -> None:
        draft.flush()
        os.fsync(draft.fileno())
        draft.close()
        place = self._place(name)
        if not place.parent.is_dir():
            place.parent.mkdir(exist_ok=True)
            _sync_folder(self.root)
        Path(draft.name).replace(place)
        _sync_folder(place.parent)

    async def stay(self, name: str) -> bool:
        return await self._do(lambda: self._stay(name))

    def _stay(self, name: str) -> bool:
        try:
            os.utime(self._place(name))
        except FileNotFoundError:
            return False
        return True

    async def read(self, name: str) -> AsyncIterator[bytes]:
        file = await self._do(lambda: self._open(name))
        try:
            while part := await self._do(lambda: file.read(_PART)):
                yield part
        finally:
            file.close()

    def _open(self, name: str) -> IO[bytes]:
        try:
            return self._place(name).open("rb")
        except FileNotFoundError:
            raise BlobMissing(f"no blob {name} in {self.root}") from None

    async def find(self, name: str) -> Found | None:
        return await self._do(lambda: _found(name, self._place(name)))

    async def all(self) -> AsyncIterator[Found]:
        for folder in await self._do(lambda: list(self._folders())):
            for found in await self._do(lambda folder=folder: list(_in(folder))):  # type: ignore[misc]
                yield found

    def _folders(self) -> Iterator[Path]:
        if self.root.is_dir():
            yield from sorted(one for one in self.root.iterdir() if one.is_dir() and len(one.name) == 2)

    async def remove(self, name: str) -> None:
        await self._do(lambda: self._place(name).unlink(missing_ok=True))

    async def tidy(self, *, before_ms: int) -> None:
        await self._do(lambda: self._tidy(before_ms))

    def _tidy(self, before_ms: int) -> None:
        drafts = self.root / _DRAFTS
        for draft in drafts.iterdir() if drafts.is_dir() else ():
            try:
                if draft.stat().st_mtime * 1000 < before_ms:
                    draft.unlink()
            except FileNotFoundError:
                pass  # kept or dropped meanwhile

    def _place(self, name: str) -> Path:
        check_name(name)
        return self.root / name[:2] / name[2:]

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> BlobsUnavailable:
        return BlobsUnavailable(f"blobs in {self.root}: {error.strerror or error}")


def now_ms() -> int:
    """By the clock that dates files: not a test's, nor another machine's."""
    return time.time_ns() // 1_000_000


def _found(name: str, place: Path) -> Found | None:
    try:
        about = place.stat()
    except FileNotFoundError:
        return None
    return Found(name, about.st_size, about.st_mtime_ns // 1_000_000)


def _in(folder: Path) -> Iterator[Found]:
    for place in sorted(folder.iterdir()):
        if (found := _found(folder.name + place.name, place)) is not None:
            yield found


def _sync_folder(folder: Path) -> None:
    # A rename is only safe from a loss of power once the folder that names the file is.
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
