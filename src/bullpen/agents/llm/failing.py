"""From a provider's refusal to an error of ours: by its status, and by its own words where these say more."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from bullpen.errors import (
    CallRefused,
    ContentRefused,
    ContextTooLong,
    ModelAccess,
    ModelError,
    ModelLimited,
    ModelOverloaded,
    ModelTimeout,
    ModelUnknown,
)

_MOST_WORDS = 500
_TOO_LONG = re.compile(
    r"context.?length|maximum context|context window|prompt is too long|too many tokens|exceeds the.{0,40}context",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content.?filter|content.?policy|content management policy|moderation", re.IGNORECASE)
_USED_UP = re.compile(r"insufficient_quota|credit balance is too low|billing", re.IGNORECASE)
_NO_MODEL = re.compile(r"model_not_found|model.{0,80}(does not exist|not found)", re.IGNORECASE)
_LOOKS_SECRET = re.compile(r"\b(sk|key|pk|rk)-[\w*.-]{4,}|(?i:bearer)\s+\S+")
_HIDDEN = "[hidden]"


class Said(msgspec.Struct, frozen=True):
    """What a provider says of an error: `type` and `code` are its words, `message` is for people."""

    type: str | None = None
    code: str | int | None = None
    message: str | None = None

    @property
    def words(self) -> str:
        return " ".join(str(word) for word in (self.type, self.code, self.message) if word)


class _Body(msgspec.Struct, frozen=True):
    error: Said | str | None = None
    message: str | None = None
    detail: Any = None


def said_in(body: bytes) -> Said:
    """The error in a body, in any of the forms that providers use; nothing where it has none, as a page of HTML."""
    try:
        found = msgspec.json.decode(body, type=_Body)
    except msgspec.DecodeError:
        return Said()
    if isinstance(found.error, str):
        return Said(message=found.error)
    detail = None if found.detail is None else str(found.detail)
    return found.error or Said(message=found.message or detail)


def error_for(
    status: int,
    said: Said,
    *,
    provider: str,
    model: str,
    retry_after: float | None,
    hide: Callable[[str], str],
) -> ModelError:
    """The error for a status of HTTP, or for one that stands in the midst of a stream."""
    kind = _kind(status, said.words)
    told = hide(said.words)[:_MOST_WORDS] or "no more is said"
    return kind(
        f"{provider}: HTTP {status} for {model}: {told}",
        provider=provider,
        model=model,
        status=status,
        retry_after=retry_after,
        # A gateway that lost patience says nothing of what the model behind it went on to write.
        may_cost=kind is ModelTimeout,
    )


def _kind(status: int, words: str) -> type[ModelError]:
    if 400 <= status < 500 and _USED_UP.search(words):
        return ModelAccess
    match status:
        case 401 | 402 | 403:
            return ModelAccess
        case 408 | 504:
            return ModelTimeout
        case 429:
            return ModelLimited
        case 503 | 529:
            return ModelOverloaded
        case 413:
            return ContextTooLong
        case 409 | 425:
            return ModelError
        case _ if status >= 500:
            return ModelError
        case _ if _TOO_LONG.search(words):
            return ContextTooLong
        case _ if _FILTERED.search(words):
            return ContentRefused
        case _ if _NO_MODEL.search(words):
            return ModelUnknown
        case _:
            return CallRefused


def hiding(*secrets: str) -> Callable[[str], str]:
    """Takes these out of a text, and what looks like one: providers quote the key that they refuse."""
    known = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in known:
            text = text.replace(secret, _HIDDEN)
        return _LOOKS_SECRET.sub(_HIDDEN, text)

    return hide
