"""A workspace as a list of its files, whose contents are blobs: what did not change is not kept again.

Large files are blobs of their own. Small ones that are new go into one blob together, a pack, and stay where they were
put as long as they are the same; when a workspace is spread over too many packs, they are put together anew.
"""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Literal, NamedTuple

import msgspec

from bullpen.errors import CheckpointFailed, CheckpointMissing, WorkspaceUnsaved
from bullpen.records.blobs.blobs import Blobs
from bullpen.records.blobs.draft import Draft

Kind = Literal["file", "folder", "link", "same"]
"""`same` is another name of a file that came before: a hard link."""

SMALL = 256 << 10
MOST_PACKS = 16
_PART = 1 << 20


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


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    version: int
    entries: tuple[Entry, ...]

    @property
    def size(self) -> int:
        return sum(entry.where.size for entry in self.entries if entry.where is not None)

    @property
    def blobs(self) -> frozenset[str]:
        return frozenset(entry.where.blob for entry in self.entries if entry.where is not None)

    def contents(self) -> dict[bytes, Where]:
        """Where each content is, by its digest; none if that is in too many places."""
        packs = {entry.where.blob for entry in self.entries if entry.where and entry.where.size < SMALL}
        kept = (entry for entry in self.entries if entry.where is not None)
        if len(packs) > MOST_PACKS:
            kept = (entry for entry in kept if entry.where is not None and entry.where.size >= SMALL)
        return {entry.digest: entry.where for entry in kept if entry.where is not None}

    def encoded(self) -> bytes:
        return msgspec.msgpack.encode(self)


EMPTY = Manifest(1, ())


def decode_manifest(data: bytes) -> Manifest:
    """CheckpointMissing for what this program cannot read."""
    try:
        found = msgspec.msgpack.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise CheckpointMissing(f"the checkpoint cannot be read: {error}") from None
    if found.version != 1:
        raise CheckpointMissing(f"the checkpoint is of version {found.version}, and this Bullpen knows 1: upgrade it")
    return found


class Split(NamedTuple):
    """An archive, taken apart."""

    manifest: Manifest
    drafts: list[Draft]
    """New contents, to be kept; their names stand in the manifest already."""


class Splitter:
    """Takes an archive of a workspace apart. It blocks: for a thread. What is in the archive is not trusted."""

    def __init__(self, blobs: Blobs, before: Manifest, *, most_bytes: int, most_files: int) -> None:
        self._blobs = blobs
        self._known = before.contents()
        self._left = most_bytes
        self._most_files = most_files
        self.drafts: list[Draft] = []
        """To be dropped by who called, whatever came of it."""
        self._pack: Draft | None = None
        self._packed: dict[bytes, tuple[int, int]] = {}

    def split(self, archive: bytes) -> Split:
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
        return Split(Manifest(1, tuple(self._placed(entries))), self.drafts)

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

    def _content(self, file: IO[bytes], size: int) -> tuple[bytes, Where | None]:
        if size > self._left:
            raise WorkspaceUnsaved("the workspace holds more than a checkpoint may")
        self._left -= size
        return self._small(file.read()) if size < SMALL else self._large(file)

    def _small(self, data: bytes) -> tuple[bytes, Where | None]:
        digest = hashlib.sha256(data).digest()
        if digest in self._known or digest in self._packed:
            return digest, self._known.get(digest)
        if self._pack is None:
            self._pack = self._draft()
        self._packed[digest] = (self._pack.size, len(data))
        self._pack.write(data)
        return digest, None  # the pack has no name yet

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

    def _placed(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        pack = self._pack.finish() if self._pack is not None else ""
        for entry in entries:
            if entry.kind == "file" and entry.where is None:
                yield msgspec.structs.replace(entry, where=Where(pack, *self._packed[entry.digest]))
            else:
                yield entry


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
