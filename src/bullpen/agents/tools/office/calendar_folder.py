"""A calendar that is a folder of .ics files, as many programs share one."""

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from bullpen.errors import ToolError

_OWN = re.compile(r"[0-9a-f]{40}@bullpen\Z")
_MOST_FILES = 10_000
_MOST_BYTES = 1_000_000


class FolderCalendar:
    """One event to a file. The folder is made when the first one is kept."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)

    async def put(self, uid: str, data: bytes) -> None:
        await asyncio.to_thread(self._put, uid, data)

    async def between(self, since: str, until: str) -> list[bytes]:  # noqa: ARG002 - whoever reads them looks at the time
        return await asyncio.to_thread(lambda: [data for _, data in self._read()])

    async def remove(self, uid: str) -> bool:
        return await asyncio.to_thread(self._remove, uid)

    def _put(self, uid: str, data: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._folder / f"{uid}.ics"
        unfinished = self._folder / f".{secrets.token_hex(8)}.tmp"
        try:
            with unfinished.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # by this very call, before its worker died
                os.link(unfinished, place)
        finally:
            unfinished.unlink(missing_ok=True)

    def _remove(self, uid: str) -> bool:
        from bullpen.agents.tools.office.calendar_events import uids

        if _OWN.match(uid):
            with contextlib.suppress(FileNotFoundError):
                (self._folder / f"{uid}.ics").unlink()
                return True
        # Another program's file is named as that program likes. One with several events is not ours to take apart.
        for path, data in self._read():
            found = uids(data)
            if found == {uid}:
                path.unlink(missing_ok=True)
                return True
            if uid in found:
                raise ToolError(f"uid: {uid!r} shares a file with other events, and is not removed")
        return False

    def _read(self) -> Iterator[tuple[Path, bytes]]:
        if not self._folder.is_dir():
            return
        paths = sorted(self._folder.glob("*.ics"))
        if len(paths) > _MOST_FILES:
            raise ToolError(f"the calendar has {len(paths):,} files; {_MOST_FILES:,} is the most")
        for path in paths:
            if path.is_file() and path.stat().st_size <= _MOST_BYTES:
                yield path, path.read_bytes()
