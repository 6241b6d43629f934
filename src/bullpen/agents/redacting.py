"""Secrets do not get into what is told of a run: neither those of the settings, nor what looks like one."""

import json
import re
import traceback
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from bullpen.settings import Settings

_GONE = "[redacted]"
_NAMES = re.compile(
    # A word of its own, but for `PWD`, in which a shell keeps its folder; and what is written with others in one.
    r"((^|_)(KEY|TOKEN|SECRET|PASS|PASSPHRASE|AUTH|CREDENTIALS?)|_PWD|PASSWORD|PASSWD|APIKEY)$",
    re.IGNORECASE,
)
_PASSWORD_IN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^/@]*?:([^@]+)@")
_ONE_WORD = re.compile(r"[!-~]+")
_SHORTEST = 8
"""Characters: a shorter value would be found in all kinds of words."""
_BEGIN, _END = r"-----BEGIN [A-Z ]*PRIVATE KEY-----", r"-----END [A-Z ]*PRIVATE KEY-----"
_LOOKS_LIKE_ONE = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r"|(?<=Bearer )[A-Za-z0-9._~+/-]{16,}=*"
    # One whose end was cut off is known by its long lines.
    rf"|{_BEGIN}(?:.*?{_END}|(?:(?:\s|\\n)+[A-Za-z0-9+/=]{{16,}})*)",
    re.DOTALL,
)
_UNFINISHED = re.compile(
    r"Bearer [!-~]*\Z|(?<![!-~])[!-~]+\Z"
    rf"|-----BEGIN [A-Z ]*-{{0,4}}\Z|{_BEGIN}(?:(?!{_END}).)*\Z",
    re.DOTALL,
)
_LONGEST = 16_384
"""Characters of what may yet turn out to be a secret: no key is longer."""


class Redactor:
    """Takes known secrets out of texts, and what has the form of one."""

    def __init__(self, secrets: Iterable[str] | None = None) -> None:
        known = secrets_of(Settings()) if secrets is None else secrets
        long = [secret for secret in known if len(secret) >= _SHORTEST]
        # In JSON a line end is written otherwise. The longest first: one may be a part of another.
        found = sorted({*long, *(json.dumps(secret)[1:-1] for secret in long)}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, found))) if found else None
        self._of_words = [secret for secret in found if not _ONE_WORD.fullmatch(secret)]
        """Those that the end of a word does not end."""

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(_GONE, text)
        return _LOOKS_LIKE_ONE.sub(_GONE, text)

    def settled(self, text: str) -> int:
        """How many characters of a text that goes on may be told: what comes may make a secret of the rest."""
        begun = max([_begun(text), *(_begun_of(secret, text) for secret in self._of_words)])
        until = len(text) - begun
        # One that is whole is not to be told in two parts.
        for pattern in (_LOOKS_LIKE_ONE, *([self._known] if self._known else [])):
            begins = (one.start() for one in pattern.finditer(text) if one.start() < until < one.end())
            until = next(begins, until)
        return until

    def is_in(self, error: BaseException) -> bool:
        """Whether a secret is in the stack of an error, or in that of one behind it."""
        stack = "".join(traceback.format_exception(error))
        return self.text(stack) != stack

    def all_in(self, value: Any) -> Any:
        """The same value with each text in it, at any depth, without its secrets."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {key: self.all_in(one) for key, one in value.items()}
            case list() | tuple():
                return [self.all_in(one) for one in value]
            case _:
                return value


def _begun(text: str) -> int:
    """How many characters at its end may be the beginning of what has the form of a secret."""
    last = text[-_LONGEST:]
    found = _UNFINISHED.search(last)
    return 0 if found is None else len(last) - found.start()


def _begun_of(secret: str, text: str) -> int:
    """How many characters at its end are the beginning of this secret, though not all of it."""
    parts = range(min(len(secret) - 1, len(text)), 0, -1)
    return next((part for part in parts if text.endswith(secret[:part])), 0)


def secrets_of(settings: Mapping[str, str]) -> list[str]:
    """The values of settings whose names say that they are secrets, and the passwords in addresses."""
    found: list[str] = []
    for name, value in settings.items():
        if _NAMES.search(name):
            found.append(value)
        elif inside := _PASSWORD_IN_ADDRESS.match(value):
            # As it is written there, and as a driver would say it.
            found += {inside[1], unquote(inside[1])}
    return found
