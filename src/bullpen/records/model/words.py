"""Texts as words to search for, the same on each database."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_MOST = 400
_LONGEST = 64


LONGEST_BEGINNING = 8
"""Of each word, SQLite has an index of its beginnings up to this many letters; the migrations say so."""
FAILED_WORD = "0failed0"
"""Stands among the words of jobs that failed."""


@lru_cache(maxsize=1024)
def tenant_word(tenant: str) -> str:
    """Stands among the words of a tenant's jobs, so that search within one does not go through all; nobody types it."""
    return f"0tenant0{hashlib.sha256(tenant.encode()).hexdigest()[:24]}"


@lru_cache(maxsize=1024)
def queue_word(queue: str) -> str:
    """The same for a queue's jobs."""
    return f"0queue0{hashlib.sha256(queue.encode()).hexdigest()[:24]}"


@lru_cache(maxsize=1024)
def workspace_word(workspace: str) -> str:
    """The same for the runs of a workspace."""
    return f"0workspace0{hashlib.sha256(workspace.encode()).hexdigest()[:24]}"


def state_word(state: str) -> str:
    """The same for what ended so."""
    return f"0{state}0"


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
