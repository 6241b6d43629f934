"""What a deployment is told by a setting's name, by whoever says it first:

    environment ──▶ the file that NAME_FILE names ──▶ bullpen.toml ──▶ nobody: the default

An argument in code or on the command line stands before all of them. `bullpen.toml` lies in the working folder, or
where `BULLPEN_SETTINGS` says. Its names are those of the environment without `BULLPEN_`, in small letters; a
table is the beginning of names: `port` in `[server]` is `BULLPEN_SERVER_PORT`.
"""

import functools
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullpen.errors import BadOption
from bullpen.settings.names import FAMILIES, NAMES, OF_OTHERS

FILE = "BULLPEN_SETTINGS"
USUAL_FILE = "bullpen.toml"
_PREFIX = "BULLPEN_"
_MAY_LIE_IN_A_FILE = NAMES | OF_OTHERS


def told(name: str) -> str | None:
    """What is said by this name; None if nobody says anything. BadOption if a file cannot be read."""
    if (said := os.environ.get(name)) is not None:
        return said
    if name in _MAY_LIE_IN_A_FILE and (path := os.environ.get(f"{name}_FILE")):
        return _secret(name, path)
    return _settings(_place()).get(name) if name.startswith(_PREFIX) else None


class Settings(Mapping[str, str]):
    """The same as a mapping, for whoever reads several names; those of other programs too."""

    def __getitem__(self, name: str) -> str:
        if (said := told(name)) is None:
            raise KeyError(name)
        return said

    def __iter__(self) -> Iterator[str]:
        in_files = {name for name in _MAY_LIE_IN_A_FILE if f"{name}_FILE" in os.environ}
        return iter({*os.environ, *in_files, *_settings(_place())})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _secret(name: str, path: str) -> str:
    try:
        said = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"{name}_FILE: {path} cannot be read: {type(error).__name__}") from error
    if not said:
        raise BadOption(f"{name}_FILE: {path} holds nothing")
    return said


def _place() -> str:
    return str(Path(os.getcwd(), os.environ.get(FILE) or USUAL_FILE))  # noqa: PTH109 - of this moment


@functools.lru_cache(maxsize=8)
def _settings(path: str) -> Mapping[str, str]:
    """Read once: a process keeps the settings that it began with."""
    try:
        text = Path(path).read_text()
    except FileNotFoundError:
        if os.environ.get(FILE):
            raise BadOption(f"{FILE}: there is no file {path}") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"{path} cannot be read: {type(error).__name__}") from error
    try:
        return dict(_flat(path, "", tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise BadOption(f"{path}: {error}") from error


def _flat(path: str, above: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        words = f"{above}{key}"
        if isinstance(value, dict):
            yield from _flat(path, f"{words}_", value)
            continue
        name = _PREFIX + re.sub(r"[^A-Za-z0-9]", "_", words).upper()
        if name not in NAMES and not name.startswith(FAMILIES):
            raise BadOption(f"{path}: {words.replace('_', '.', 1) if above else words}: there is no such setting")
        yield name, _as_text(path, key, value)


def _as_text(path: str, key: str, value: object) -> str:
    match value:
        case bool():
            return str(int(value))
        case str() | int() | float():
            return str(value)
        case list() if all(isinstance(one, str) for one in value):
            return ",".join(value)
        case _:
            raise BadOption(f"{path}: {key}: a text, a number, true, false or a list of texts")
