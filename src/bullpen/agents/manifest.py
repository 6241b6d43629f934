"""What a save changed in a workspace, as a list of files whose contents are blobs.

Large files are blobs of their own. Small ones that are new go into one blob together, a pack.
"""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from typing import IO, Literal, NamedTuple

import msgspec

from bullpen.errors import CheckpointFailed, CheckpointMissing, WorkspaceUnsaved
from bullpen.records.blobs.blobs import Blobs
from bullpen.records.blobs.draft import Draft

Kind = Literal["file", "folder", "link", "same"]
"""`same` is another name of a file that came before: a hard link."""

SMALL = 256 << 10
_VERSION = 2
_PART = 1 << 20
_UNNAMED = ""


class Where(NamedTuple):
    """The bytes of a file: all of a blob, or a part of one."""

    blob: str
    start: int
    size: int


class Entry(msgspec.Struct, frozen=True, array_like=True):
    name: bytes
    """Bytes, as the sandbox has them: they need not be text."""
    kind: Kind
    mode: int
    changed_ms: int
    target: bytes = b""
    """Of a link."""
    digest: bytes = b""
    """Of a file's bytes."""
    where: Where | None = None

    @property
    def size(self) -> int:
        return 0 if self.where is None else self.where.size

    @property
    def blob(self) -> str:
        """Empty for what is no file."""
        return "" if self.where is None else self.where.blob

    def is_like(self, other: "Entry | None") -> bool:
        """Whether they are the same, wherever their bytes are."""
        return other is not None and msgspec.structs.replace(other, where=self.where) == self


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    """One of version 1 has all files of its workspace, and nothing below it."""

    version: int
    entries: tuple[Entry, ...]
    """New, or other than they were."""
    gone: tuple[bytes, ...] = ()
    """Names of what is below, and is no more."""
    below: tuple[str, ...] = ()
    """Manifests that it goes on from, the oldest first: of each its own files count, and not what is below it."""
    history_bytes: int = 0
    """Kept by all saves since the oldest that can be gone back to."""

    def encoded(self) -> bytes:
        return msgspec.msgpack.encode(self)


def new_manifest(entries: Iterable[Entry], gone: Iterable[bytes], below: Iterable[str], history_bytes: int) -> Manifest:
    return Manifest(_VERSION, tuple(entries), tuple(gone), tuple(below), history_bytes)


def decode_manifest(data: bytes) -> Manifest:
    """CheckpointMissing for what this program cannot read."""
    try:
        found = msgspec.msgpack.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise CheckpointMissing(f"the checkpoint cannot be read: {error}") from None
    if not 1 <= found.version <= _VERSION:
        raise CheckpointMissing(
            f"the checkpoint is of version {found.version}, and this Bullpen knows {_VERSION}: upgrade it"
        )
    return found


class Splitter:
    """Takes an archive of what changed apart. It blocks: for a thread. What is in the archive is not trusted."""

    def __init__(self, blobs: Blobs, known: Mapping[bytes, Where], *, most_bytes: int, most_files: int) -> None:
        self._blobs = blobs
        self._known = dict(known)
        """Where contents are that need not be kept again, by their digest."""
        self._left = most_bytes
        self._most_files = most_files
        self.drafts: list[Draft] = []
        """New contents, to be kept; to be dropped by who called, whatever came of it."""
        self._pack: Draft | None = None

    def split(self, archive: bytes) -> list[Entry]:
        """What is in it. Small files that are new are in a pack without a name: see `placed`."""
        entries: list[Entry] = []
        try:
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r|gz") as members:
                for member in members:
                    if len(entries) == self._most_files:
                        raise WorkspaceUnsaved(f"the workspace has more than {self._most_files} files")
                    if member.name != "." and (entry := self._entry(members, member)) is not None:
                        entries.append(entry)
        except (tarfile.TarError, OSError, EOFError, ValueError) as error:
            raise CheckpointFailed(f"the sandbox sent what is no archive: {error}") from error
        return entries

    def move(self, entries: Iterable[Entry], blob: bytes) -> list[Entry]:
        """Into the new pack, from the blob that they are in."""
        moved: list[Entry] = []
        for entry in entries:
            assert entry.where is not None
            start, size = entry.where.start, entry.where.size
            moved.append(msgspec.structs.replace(entry, where=self._packed(blob[start : start + size])))
        return moved

    def placed(self, entries: Iterable[Entry]) -> list[Entry]:
        """The same, when nothing more goes into the pack: it has a name now."""
        pack = self._pack.finish() if self._pack is not None else _UNNAMED
        return [
            msgspec.structs.replace(entry, where=entry.where._replace(blob=pack))
            if entry.where is not None and entry.blob == _UNNAMED
            else entry
            for entry in entries
        ]

    def _entry(self, members: tarfile.TarFile, member: tarfile.TarInfo) -> Entry | None:
        name, mode, changed_ms = _as_bytes(member.name), member.mode & 0o7777, round(member.mtime * 1000)
        if member.isreg():
            file = members.extractfile(member)
            assert file is not None
            digest, where = self._content(file, member.size)
            return Entry(name, "file", mode, changed_ms, digest=digest, where=where)
        if member.isdir():
            return Entry(name, "folder", mode, changed_ms)
        if member.islnk():
            return Entry(name, "same", mode, changed_ms, target=_as_bytes(member.linkname))
        if member.issym():
            # Not its time, which no archive gives back: a workspace that was restored has not changed by that.
            return Entry(name, "link", mode, 0, target=_as_bytes(member.linkname))
        return None

    def _content(self, file: IO[bytes], size: int) -> tuple[bytes, Where]:
        if size > self._left:
            raise WorkspaceUnsaved("the workspace holds more than a checkpoint may")
        self._left -= size
        return self._small(file.read()) if size < SMALL else self._large(file)

    def _small(self, data: bytes) -> tuple[bytes, Where]:
        digest = hashlib.sha256(data).digest()
        if digest not in self._known:
            self._known[digest] = self._packed(data)
        return digest, self._known[digest]

    def _packed(self, data: bytes) -> Where:
        if self._pack is None:
            self._pack = self._draft()
        where = Where(_UNNAMED, self._pack.size, len(data))
        self._pack.write(data)
        return where

    def _large(self, file: IO[bytes]) -> tuple[bytes, Where]:
        # Its digest is known only at its end; by then it is written, and is dropped if it was there already.
        draft = self._draft()
        while part := file.read(_PART):
            draft.write(part)
        name = draft.finish()
        digest = bytes.fromhex(name)
        if digest in self._known:
            self.drafts.remove(draft)
            self._blobs.drop(draft)
        return digest, self._known.setdefault(digest, Where(name, 0, draft.size))

    def _draft(self) -> Draft:
        self.drafts.append(draft := self._blobs.open_draft())
        return draft


class Joiner:
    """Puts an archive together from a manifest, for a sandbox to restore. `add` blocks: for a thread."""

    def __init__(self) -> None:
        self._file = io.BytesIO()
        self._packed = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=1)
        self._archive = tarfile.open(fileobj=self._packed, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - `finish` closes it

    def add(self, entries: Iterable[Entry], contents: Mapping[str, bytes]) -> None:
        """These, whose blobs are in `contents`."""
        for entry in entries:
            member = tarfile.TarInfo(_as_text(entry.name))
            member.mode, member.mtime = entry.mode, entry.changed_ms / 1000
            member.type = _TYPES[entry.kind]
            member.linkname = _as_text(entry.target)
            data = b""
            if entry.where is not None:
                start, size = entry.where.start, entry.where.size
                data = contents[entry.where.blob][start : start + size]
                member.size = size
            self._archive.addfile(member, io.BytesIO(data))

    def finish(self) -> bytes:
        self._archive.close()
        self._packed.close()
        return self._file.getvalue()


_TYPES: dict[Kind, bytes] = {
    "file": tarfile.REGTYPE,
    "folder": tarfile.DIRTYPE,
    "link": tarfile.SYMTYPE,
    "same": tarfile.LNKTYPE,
}


def _as_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _as_text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
