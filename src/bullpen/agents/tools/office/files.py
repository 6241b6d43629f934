"""Files that tools make and take: their names, what a model is told of them, and those that an earlier call kept."""

import asyncio
import contextlib
import re
import unicodedata
from collections.abc import Iterator
from typing import Protocol

import msgspec

from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import ToolError

MAX_BYTES = 20_000_000
"""Of a file that is put into another, or sent."""
MAX_PIXELS = 40_000_000
_MAX_NAME = 100
_NO_NAME = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]+')
_PICTURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg"}


class KeptFile(msgspec.Struct, frozen=True):
    """An artifact, as it is read again."""

    name: str
    data: bytes
    mime: str = "application/octet-stream"


class ReadFile(Protocol):
    """Reads an artifact that the call may see, by its id; None if there is none such."""

    async def __call__(self, context: ToolContext, artifact: str) -> KeptFile | None: ...


class Made(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model is told of a file that it had made."""

    artifact: str
    name: str
    mime: str
    bytes: int
    notes: tuple[str, ...] = ()
    """What is not as it was asked for."""


async def keep(context: ToolContext, name: str, data: bytes, mime: str, notes: tuple[str, ...] = ()) -> Made:
    artifact = await context.keep_file(name, data, mime=mime)
    return Made(artifact=artifact, name=name, mime=mime, bytes=len(data), notes=notes)


async def read_kept(read: ReadFile | None, context: ToolContext, artifact: str, field: str) -> KeptFile:
    """ToolError, which names the field, for what is not there or too large."""
    found = None if read is None else await read(context, artifact)
    if found is None:
        raise ToolError(f"{field}: there is no artifact {artifact!r} here")
    if len(found.data) > MAX_BYTES:
        raise ToolError(f"{field}: {artifact!r} has {len(found.data):,} bytes; {MAX_BYTES:,} is the most")
    return found


async def read_picture(read: ReadFile | None, context: ToolContext, artifact: str, field: str) -> bytes:
    """A PNG or JPEG that is safe to open: its pixels are counted before anybody unpacks them."""
    found = await read_kept(read, context, artifact, field)
    if not any(found.data.startswith(mark) for mark in _PICTURES):
        raise ToolError(f"{field}: {artifact!r} is no PNG or JPEG picture")
    width, height = await asyncio.to_thread(_size_of, found.data, field)
    if width * height > MAX_PIXELS:
        raise ToolError(f"{field}: {artifact!r} has {width} × {height} pixels; {MAX_PIXELS:,} is the most")
    return found.data


def _size_of(data: bytes, field: str) -> tuple[int, int]:
    with needs("pillow"):
        from bullpen.agents.tools.office.pictures import size_of
    return size_of(data, field)


def file_name(name: str, ending: str) -> str:
    """A name that every system takes, with its ending; never a path."""
    bare = _NO_NAME.sub("-", unicodedata.normalize("NFC", name)).strip(" .-")
    if bare.lower().endswith(f".{ending}"):
        bare = bare[: -len(ending) - 1]
    return f"{bare[:_MAX_NAME] or 'file'}.{ending}"


def plain(text: str) -> str:
    """Without signs that cannot be seen and that no document can carry: control characters, halves of pairs."""
    return "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in {"Cc", "Cs"})


@contextlib.contextmanager
def needs(package: str) -> Iterator[None]:
    """Around a late import: ToolError says what to install."""
    try:
        yield
    except ImportError as error:
        raise ToolError(
            f"{package} is not installed where this tool runs: pip install 'bullpen[agents]' ({error})"
        ) from error
