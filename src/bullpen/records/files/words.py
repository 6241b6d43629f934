"""The words of files: what one is, what it may be called, and how large it may be."""

import mimetypes
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

import msgspec

from bullpen.errors import BadOption

MAX_NAME_BYTES = 255
MAX_METADATA_BYTES = 16_000
_USUAL_MIME = "application/octet-stream"
_MIME = re.compile(r"[a-z0-9][\w.+-]*/[\w.+*-]+(\s*;\s*[\w-]+=[\w.\"+-]+)*", re.IGNORECASE | re.ASCII)


class FileKind(StrEnum):
    """Whose it is."""

    INPUT = "input"
    """Given to the run."""
    ARTIFACT = "artifact"
    """Made by a tool of it."""


class FileType(StrEnum):
    """How it is shown."""

    FILE = "file"
    IMAGE = "image"
    DOCUMENT = "document"
    SLIDE_DECK = "slide_deck"
    CODE = "code"


_ENDINGS = {
    FileType.SLIDE_DECK: "pptx ppt odp key",
    FileType.DOCUMENT: "pdf doc docx odt rtf md markdown txt html htm tex epub xls xlsx ods",
    FileType.CODE: (
        "py pyi ipynb js mjs ts tsx jsx css scss c h cc cpp hpp rs go java kt swift rb php pl lua r jl sh bash sql "
        "toml yaml yml json xml ini cfg dockerfile ps1 cs scala hs ex exs vue"
    ),
    FileType.IMAGE: "png jpg jpeg gif webp svg bmp tif tiff ico avif heic",
}
_BY_ENDING = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
_BY_MIME = {
    "application/pdf": FileType.DOCUMENT,
    "application/msword": FileType.DOCUMENT,
    "application/rtf": FileType.DOCUMENT,
    "application/json": FileType.CODE,
    "application/javascript": FileType.CODE,
    "application/vnd.ms-powerpoint": FileType.SLIDE_DECK,
    "text/plain": FileType.DOCUMENT,
    "text/html": FileType.DOCUMENT,
    "text/markdown": FileType.DOCUMENT,
}
_BY_MIME_PART = (
    ("presentation", FileType.SLIDE_DECK),
    ("wordprocessing", FileType.DOCUMENT),
    ("spreadsheet", FileType.DOCUMENT),
    ("opendocument.text", FileType.DOCUMENT),
    ("text/x-", FileType.CODE),
)


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, without its bytes."""

    id: str
    tenant: str
    run: str | None
    """None: given, and no run has it yet."""
    task: str | None
    """Which made it."""
    kind: FileKind
    type: FileType
    name: str
    mime: str
    size: int
    sha256: str
    metadata: dict[str, Any]
    created_ms: int
    expires_ms: int | None
    """None: as long as its run."""


class FilePage(msgspec.Struct, frozen=True):
    files: tuple[RunFile, ...]
    cursor: str | None
    """Where the next page begins."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The workspace of a task after a step."""

    id: str
    task: str
    place: int
    """Of the step, in the journal."""
    sha256: str
    size: int
    """Of all files in it."""
    created_ms: int
    expires_ms: int | None


class Expired(msgspec.Struct, frozen=True):
    """What was removed."""

    files: int
    checkpoints: int
    blobs: int


def type_of(name: str, mime: str) -> FileType:
    """By its name, which says more than `text/plain` does; else by its MIME type."""
    by_name = _BY_ENDING.get(PurePosixPath(name.lower()).suffix.removeprefix("."))
    if by_name is not None:
        return by_name
    plain = mime.partition(";")[0].strip().lower()
    if plain.startswith("image/"):
        return FileType.IMAGE
    parts = (kind for part, kind in _BY_MIME_PART if part in plain)
    return _BY_MIME.get(plain) or next(parts, FileType.FILE)


def check_file_name(name: object) -> str:
    """A name alone, that is one on every machine; BadOption."""
    if not isinstance(name, str) or not name.strip() or name in {".", ".."}:
        raise BadOption(f"name: of a file, such as report.pdf, not {name!r}")
    if any(character in "/\\" or not character.isprintable() for character in name):
        raise BadOption(f"name: without slashes and control characters, not {name!r}")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise BadOption(f"name: {MAX_NAME_BYTES} bytes or fewer, not {len(name.encode())}")
    return name


def check_mime(mime: str | None, name: str) -> str:
    """What was told, or what the name suggests; BadOption."""
    if mime is None:
        return mimetypes.guess_type(name, strict=False)[0] or _USUAL_MIME
    if len(mime) > 200 or not _MIME.fullmatch(mime):
        raise BadOption(f"mime: a type such as text/csv, not {mime[:200]!r}")
    return mime


def check_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """BadOption if it is not a small JSON object."""
    try:
        encoded = msgspec.json.encode(dict(metadata or {}))
    except (TypeError, ValueError) as error:
        raise BadOption(f"metadata: an object that JSON can hold: {error}") from None
    if len(encoded) > MAX_METADATA_BYTES:
        raise BadOption(f"metadata: {MAX_METADATA_BYTES:,} bytes of JSON or fewer, not {len(encoded):,}")
    plain: dict[str, Any] = msgspec.json.decode(encoded)
    return plain
