"""Files of the workspace: what a path leads to is looked up in here, where no link leads out to the host."""

import contextlib
import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Mapping
from typing import BinaryIO

from bullpen.agents.sandbox.warden.wire import CHUNK, Head, Refused, Wire

WORKSPACE = "/workspace"
INPUTS = "/inputs"
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_SCRATCH = (WORKSPACE, _TMP, "/dev/shm")  # noqa: S108
_MOST_ENTRIES = 10_000
_MOST_NAMED, _MOST_OF_A_NAME = 10, 200
_PART = 1 << 20
_SAVED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
_SEEN = stat.S_IRUSR | stat.S_IXUSR


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


def _kept(entry: tarfile.TarInfo) -> bool:
    return entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()


class _Look:
    """What was in the workspace when it was last packed, by name, and a mark to know that by."""

    mark = 0
    seen: Mapping[str, bytes] = {}


def _pack(wire: Wire, head: Head, _body: bytes) -> Head:
    """All of the workspace; or, with `since`, what changed since the look that had this mark."""
    is_all = head.get("since", 0) != _Look.mark or not _Look.mark
    before = {} if is_all else _Look.seen
    skipped: list[str] = []
    with gzip.GzipFile(fileobj=_Parts(wire, head), mode="wb", compresslevel=1) as packed:
        with tarfile.open(fileobj=packed, mode="w|") as archive:
            seen = _add_changed(archive, head["limit"], before, skipped)
    gone = b"".join(os.fsencode(name) + b"\0" for name in before.keys() - seen.keys())
    for start in range(0, len(gone), CHUNK):
        wire.send({"id": head["id"], "part": "gone"}, gone[start : start + CHUNK])
    if "since" in head:
        _Look.mark, _Look.seen = _Look.mark + 1, seen
    return {"skipped": len(skipped), "names": skipped[:_MOST_NAMED], "is_all": is_all, "mark": _Look.mark}


def _add_changed(
    archive: tarfile.TarFile, left: int, before: Mapping[str, bytes], skipped: list[str]
) -> dict[str, bytes]:
    """Add what is other than before, of all that can be read; what is there now.

    Refused if the files of the workspace have more bytes than are left.
    """
    seen: dict[str, bytes] = {}
    names = ["."]
    while names:  # not by recursion: folders may be nested as deep as a path is long
        name = names.pop()
        full = os.path.join(WORKSPACE, name)
        try:
            file, inside = _opened(full)
        except OSError:
            skipped.append(name.encode("utf-8", "replace").decode()[:_MOST_OF_A_NAME])
            continue
        with file or contextlib.nullcontext():
            about = os.lstat(full)
            if stat.S_IFMT(about.st_mode) not in _SAVED:
                continue
            # As they are read: a file with holes in it takes no room here, and all of its size elsewhere.
            if file and (left := left - about.st_size) < 0:
                raise Refused("too-large", "the files of the workspace are larger than may be packed")
            seen[name] = _digest(full, about, file)
            # A file of two names is sent with both, each time: the archive has to say that they are one.
            if before.get(name) != seen[name] or (file and about.st_nlink > 1):
                archive.addfile(archive.gettarinfo(full, name), file)
        names += [f"{name}/{one}" for one in sorted(inside, reverse=True)]
    return seen


def _digest(full: str, about: os.stat_result, file: BinaryIO | None) -> bytes:
    """Of all that is kept. Times alone do not tell: a file that is written by way of memory has the old ones."""
    digest = hashlib.sha256(f"{about.st_mode} {about.st_nlink if file else 0} ".encode())
    if stat.S_ISLNK(about.st_mode):
        digest.update(os.fsencode(os.readlink(full)))
        return digest.digest()
    digest.update(f"{about.st_mtime_ns} ".encode())
    if file:
        while data := file.read(_PART):
            digest.update(data)
        file.seek(0)
    return digest.digest()


def _opened(full: str) -> tuple[BinaryIO | None, list[str]]:
    """The file, if it is one, and what is in the folder, if it is that. Code may have made them unreadable."""
    mode = os.lstat(full).st_mode
    if stat.S_ISREG(mode):
        if not mode & stat.S_IRUSR:
            os.chmod(full, stat.S_IMODE(mode) | stat.S_IRUSR)
        return open(_regular(full, os.O_RDONLY), "rb"), []
    if stat.S_ISDIR(mode):
        if mode & _SEEN != _SEEN:
            os.chmod(full, stat.S_IMODE(mode) | _SEEN)
        return None, os.listdir(full)
    return None, []


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
