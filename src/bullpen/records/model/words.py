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
        plain = unicodedata.normalize("NFKD", text.casefold())
        for word in _WORD.findall("".join(sign for sign in plain if not unicodedata.combining(sign))):
            found[word[:_LONGEST]] = None
            if len(found) >= _MOST:
                return list(found)
    return list(found)
