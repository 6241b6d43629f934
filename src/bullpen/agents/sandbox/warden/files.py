"""Files of the workspace: what a path leads to is looked up in here, where no link leads out to the host."""

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable, Mapping

from bullpen.agents.sandbox.warden.wire import CHUNK, Head, Refused, Wire

WORKSPACE = "/workspace"
INPUTS = "/inputs"
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_SCRATCH = (WORKSPACE, _TMP, "/dev/shm")  # noqa: S108
_MOST_ENTRIES = 10_000


def files_in_use() -> int:
    rooms = [os.statvfs(folder) for folder in _SCRATCH if os.path.isdir(folder)]
    return sum(room.f_files - room.f_ffree for room in rooms)


def disk_is_full() -> bool:
    rooms = [os.statvfs(folder) for folder in _SCRATCH if os.path.isdir(folder)]
    return any(room.f_bavail * room.f_frsize < CHUNK for room in rooms)


def inside(path: str, *more: str) -> str:
    """Where the path leads; refused if that is not in the workspace or in `/tmp`."""
    full = os.path.realpath(os.path.join(WORKSPACE, path))
    if any(full == root or full.startswith(root + "/") for root in (WORKSPACE, _TMP, *more)):
        return full
    raise Refused("outside", f"{path}: leads out of the workspace")


def _regular(full: str, flags: int) -> int:
    # Not blocking: a FIFO would hold us for ever.
    fd = os.open(full, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Refused("not-a-file", f"{os.path.relpath(full, WORKSPACE)}: is no regular file")
    return fd


def _read(wire: Wire, head: Head, _body: bytes) -> Head:
    with open(_regular(inside(head["path"], INPUTS), os.O_RDONLY), "rb") as file:
        left: int = head["limit"]
        while left and (data := file.read(min(CHUNK, left))):
            left -= len(data)
            wire.send({"id": head["id"], "part": "data"}, data)
        return {"cut": bool(file.read(1))}


def _write(_wire: Wire, head: Head, body: bytes) -> Head:
    full = inside(head["path"])
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(_regular(full, os.O_WRONLY | os.O_CREAT), "wb") as file:
        if head["append"]:
            file.seek(0, os.SEEK_END)
        else:
            file.truncate()
        file.write(body)
    return {}


def _list(_wire: Wire, head: Head, _body: bytes) -> Head:
    entries: list[Head] = []
    with os.scandir(inside(head["path"], INPUTS)) as found:
        for entry in found:
            if len(entries) == _MOST_ENTRIES:
                return {"entries": entries, "cut": True}
            about = entry.stat(follow_symlinks=False)
            name = entry.name.encode("utf-8", "replace").decode()
            entries.append({"name": name, "kind": _kind(about.st_mode), "bytes": about.st_size})
    return {"entries": sorted(entries, key=lambda entry: str(entry["name"])), "cut": False}


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "link", stat.S_IFDIR: "folder", stat.S_IFREG: "file"}
    return kinds.get(stat.S_IFMT(mode), "other")


class _Parts(io.RawIOBase):
    """A file that goes out in frames, up to a limit."""

    def __init__(self, wire: Wire, head: Head) -> None:
        super().__init__()
        self._wire, self._id, self._left = wire, head["id"], head["limit"]

    def write(self, data: bytes) -> int:  # type: ignore[override]  # tarfile writes bytes
        self._left -= len(data)
        if self._left < 0:
            raise Refused("too-large", "the workspace is larger than may be packed")
        self._wire.send({"id": self._id, "part": "data"}, bytes(data))
        return len(data)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None


def _pack(wire: Wire, head: Head, _body: bytes) -> Head:
    with gzip.GzipFile(fileobj=_Parts(wire, head), mode="wb", compresslevel=1) as packed:
        with tarfile.open(fileobj=packed, mode="w|") as archive:
            archive.add(WORKSPACE, arcname=".", filter=_kept)
    return {}


def _unpack(_wire: Wire, head: Head, _body: bytes) -> Head:
    full = inside(head["path"])
    try:
        with tarfile.open(full, "r:*") as archive:
            # What is in it can do no more than a command can.
            archive.extractall(WORKSPACE, [one for one in archive if _kept(one) and one.name != "."])  # noqa: S202
    except tarfile.TarError as error:
        raise Refused("not-a-snapshot", f"this is no snapshot: {error}") from None
    finally:
        os.unlink(full)
    return {}


def _ping(_wire: Wire, _head: Head, _body: bytes) -> Head:
    return {}


VERBS: Mapping[str, Callable[[Wire, Head, bytes], Head]] = {
    "read": _read,
    "write": _write,
    "list": _list,
    "pack": _pack,
    "unpack": _unpack,
    "ping": _ping,
}
