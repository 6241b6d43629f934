"""Fonts of this machine: which files draw a text, and what none of them can draw."""

import functools
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from fontTools.ttLib import TTFont, TTLibError  # type: ignore[import-untyped]  # it has no types

from bullpen.settings import told

FONTS = "BULLPEN_FONTS"
_USUAL = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/Library/Fonts",
    "/System/Library/Fonts/Supplemental",
)
_ENDINGS = {".ttf", ".otf"}
_MOST = 1_000
"""Font files that are looked at; a machine of a designer has more."""
_STYLES = (
    ("-Regular", "-Bold", "-Italic", "-BoldItalic"),
    ("", "-Bold", "-Oblique", "-BoldOblique"),
    ("", " Bold", " Italic", " Bold Italic"),
)
_TEXT = ("DejaVuSans", "NotoSans", "LiberationSans", "Arial")
_FIXED = ("DejaVuSansMono", "NotoSansMono", "LiberationMono", "Courier New")
_DRAWN_BY_NONE = {"\n", "\t", "\u200b", "\u200d", "\ufe0e", "\ufe0f"}


class Family(msgspec.Struct, frozen=True):
    """Files; a style that has none is drawn by the regular one."""

    regular: Path
    bold: Path
    italic: Path
    bold_italic: Path


class Drawing(msgspec.Struct, frozen=True):
    """How a text is drawn."""

    text: Family | None
    """None where this machine has no font: then what every reader of PDF brings along, for Western letters."""
    fixed: Family | None
    others: tuple[Path, ...]
    """For what the first one lacks."""
    missing: frozenset[str]
    """What nothing here can draw."""


def font_folders(given: Path | str | None = None) -> list[Path]:
    """The one that is given, or that `BULLPEN_FONTS` names, before those of the system."""
    named = given or told(FONTS)
    places = ([str(named)] if named else []) + list(_USUAL)
    return [folder for folder in (Path(place).expanduser() for place in places) if folder.is_dir()]


@functools.lru_cache(maxsize=8)
def font_files(folders: tuple[Path, ...]) -> dict[str, Path]:
    """By file name without its ending; a folder that comes first wins."""
    found: dict[str, Path] = {}
    for path in _walk(folders):
        found.setdefault(path.stem, path)
        if len(found) >= _MOST:
            break
    return found


def choose(texts: Iterable[str], folders: Iterable[Path]) -> Drawing:
    files = font_files(tuple(folders))
    family = _family(files, _TEXT) or next((Family(one, one, one, one) for one in files.values()), None)
    wanted = {sign for text in texts for sign in text} - _DRAWN_BY_NONE
    lacking = {sign for sign in wanted if not _draws(family, sign)}
    others: list[Path] = []
    for path in files.values() if family is not None else ():
        if not lacking:
            break
        here = {sign for sign in lacking if ord(sign) in _signs(path)}
        if here and "Color" not in path.name:
            others.append(path)
            lacking -= here
    return Drawing(family, _family(files, _FIXED), tuple(others), frozenset(lacking))


def letters(signs: Iterable[str]) -> str:
    """Those without which words cannot be read, in order; ornaments and faces are not among them."""
    return "".join(sorted(sign for sign in signs if unicodedata.category(sign)[0] in "LMN"))


def _walk(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in _ENDINGS and path.is_file():
                yield path


def _family(files: dict[str, Path], names: Iterable[str]) -> Family | None:
    for name in names:
        for styles in _STYLES:
            regular = files.get(name + styles[0])
            if regular is not None:
                rest = [files.get(name + style, regular) for style in styles[1:]]
                return Family(regular, *rest)
    return None


def _draws(family: Family | None, sign: str) -> bool:
    if family is not None:
        return ord(sign) in _signs(family.regular)
    try:
        sign.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


@functools.lru_cache(maxsize=_MOST)
def _signs(path: Path) -> frozenset[int]:
    """The code points that a font has; none for a file that cannot be read."""
    try:
        with TTFont(path, lazy=True) as font:
            return frozenset(font.getBestCmap() or ())
    except (TTLibError, OSError, KeyError, ValueError, AssertionError):
        return frozenset()
