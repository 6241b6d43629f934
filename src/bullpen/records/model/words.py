"""Texts as words to search for, the same on each database."""

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+")
_MOST = 400
_LONGEST = 64


def words_of(texts: Iterable[str]) -> list[str]:
    """Their distinct words, without case and accents; of a very long text the first ones."""
    found: dict[str, None] = {}
    for text in texts:
        for word in _WORD.findall(_plain(text)):
            found[word[:_LONGEST]] = None
            if len(found) >= _MOST:
                return list(found)
    return list(found)


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in apart if not unicodedata.combining(sign))
