"""Blobs in a bucket of Amazon S3, or of any server that speaks its protocol.

Keys and address come from the usual names of the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
AWS_ENDPOINT_URL and so on.
"""

import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import IO, TYPE_CHECKING

from bullpen.errors import BadOption, BlobMissing, BlobsUnavailable
from bullpen.records.blobs.home import Found, check_name

if TYPE_CHECKING:
    from obstore.store import S3Store

_IN_MEMORY = 8 << 20
_PART = 1 << 20
_STAYS_MS = 30 * 60_000
"""A bucket cannot make an object young again but by writing it: below this age it need not."""
_TRY_FOR_S = 30


class BucketHome:
    def __init__(self, bucket: str, prefix: str = "") -> None:
        if not bucket:
            raise BadOption("BULLPEN_BLOBS: s3://BUCKET/PREFIX, with a bucket")
        self._address = f"s3://{bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._store = _open(bucket)

    def draft(self) -> IO[bytes]:
        return tempfile.SpooledTemporaryFile(_IN_MEMORY)

    def drop(self, draft: IO[bytes]) -> None:
        draft.close()

    async def keep(self, draft: IO[bytes], name: str) -> None:
        import obstore

        size = draft.seek(0, os.SEEK_END)
        draft.seek(0)
        try:
            with self._trouble(name):
                whole = draft.read() if size <= _IN_MEMORY else draft
                await obstore.put_async(self._store, self._key(name), whole)
        except BlobMissing:
            raise BlobsUnavailable(f"blobs in {self._address}: there is no such bucket") from None

    async def stay(self, name: str) -> bool:
        found = await self.find(name)
        return found is not None and time.time() * 1000 - found.written_ms < _STAYS_MS

    async def read(self, name: str) -> AsyncIterator[bytes]:
        import obstore

        with self._trouble(name):
            answer = await obstore.get_async(self._store, self._key(name))
            async for part in answer.stream(min_chunk_size=_PART):
                yield bytes(part)

    async def find(self, name: str) -> Found | None:
        import obstore

        try:
            with self._trouble(name):
                about = await obstore.head_async(self._store, self._key(name))
        except BlobMissing:
            return None
        return Found(name, about["size"], round(about["last_modified"].timestamp() * 1000))

    async def all(self) -> AsyncIterator[Found]:
        import obstore

        with self._trouble("*"):
            async for page in obstore.list(self._store, prefix=self._prefix or None, chunk_size=1_000):
                for about in page:
                    name = about["path"].removeprefix(self._prefix).replace("/", "")
                    yield Found(name, about["size"], round(about["last_modified"].timestamp() * 1000))

    async def remove(self, name: str) -> None:
        import obstore

        try:
            with self._trouble(name):
                await obstore.delete_async(self._store, self._key(name))
        except BlobMissing:
            pass  # as it should be

    async def tidy(self, *, before_ms: int) -> None:
        """Drafts are this machine's; those of uploads that broke off are the bucket's own to remove, by its rules."""

    def _key(self, name: str) -> str:
        check_name(name)
        return f"{self._prefix}{name[:2]}/{name[2:]}"

    @contextmanager
    def _trouble(self, name: str) -> Iterator[None]:
        from obstore.exceptions import BaseError, NotFoundError

        try:
            yield
        except (FileNotFoundError, NotFoundError):
            raise BlobMissing(f"no blob {name} in {self._address}") from None
        except (BaseError, OSError) as error:
            # The first line: the rest is the library's own account of itself.
            why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise BlobsUnavailable(f"blobs in {self._address}: {why}") from error


def _open(bucket: str) -> "S3Store":
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise BadOption("BULLPEN_BLOBS: a bucket needs bullpen[s3]") from error
    address = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return S3Store(
        bucket,
        client_options={"allow_http": address.startswith("http://"), "timeout": "60s"},
        retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=_TRY_FOR_S)},
    )
