"""Secrets do not get into what is told of a run: neither those of the settings, nor what looks like one."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from bullpen.settings import Told

_GONE = "[redacted]"
_NAMES = re.compile(r"(_KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS)$")
_PASSWORD_IN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^/@]*?:([^@]+)@")
_SHORTEST = 8
"""Characters: a shorter value would be found in all kinds of words."""
_LOOKS_LIKE_ONE = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r"|(?<=Bearer )[A-Za-z0-9._~+/-]{16,}=*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)


class Redactor:
    """Takes known secrets out of texts, and what has the form of one."""

    def __init__(self, secrets: Iterable[str] | None = None) -> None:
        known = secrets_of(Told()) if secrets is None else secrets
        # The longest first: one may be a part of another.
        found = sorted({secret for secret in known if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, found))) if found else None

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(_GONE, text)
        return _LOOKS_LIKE_ONE.sub(_GONE, text)

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
