"""What a provider still allows, read from the headers of its answers.

- OpenAI: `x-ratelimit-remaining-tokens` and its kin for limit and reset, and for requests; a reset is a span: 6m0s.
- Anthropic: `anthropic-ratelimit-tokens-remaining` and its kin, also for input and output tokens; a reset is a time.
- Either: `retry-after` in seconds or as a date, and `retry-after-ms`.
"""

import email.utils
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_LONGEST_S = 86_400.0
"""No one is made to wait longer for a header's sake; a queue is closed for a day at most."""
_ANTHROPIC = "anthropic-ratelimit-"


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much of one kind may still be used, and when there will be more."""

    limit: int | None = None
    remaining: int | None = None
    resets_ms: int | None = None


NO_QUOTA = Quota()


class Allowance(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a provider said of its limits when it answered; what it did not say is unknown."""

    requests: Quota = NO_QUOTA
    tokens: Quota = NO_QUOTA
    input_tokens: Quota = NO_QUOTA
    output_tokens: Quota = NO_QUOTA
    retry_at_ms: int | None = None
    """Before then it wants to hear nothing."""

    def hold_s(self, now_ms: int, *, needs_tokens: int = 1) -> float:
        """For how long a further call of so many tokens would be refused; 0 if it would not, for all we know."""
        short = [self.retry_at_ms or 0]
        if _is_short(self.requests, 1):
            short.append(self.requests.resets_ms or 0)
        short += [
            quota.resets_ms or 0
            for quota in (self.tokens, self.input_tokens, self.output_tokens)
            if _is_short(quota, needs_tokens)
        ]
        return min(max(0, max(short) - now_ms) / 1000, _LONGEST_S)


def _is_short(quota: Quota, needs: int) -> bool:
    if quota.remaining is None:
        return False
    # What never fits is not worth waiting for: a full quota is as good as it gets.
    return quota.remaining < (needs if quota.limit is None else min(needs, quota.limit))


def allowance_of(headers: Mapping[str, str], now_ms: int) -> Allowance | None:
    """What the headers say, their names in small letters; None if they say nothing."""
    found = Allowance(
        requests=_quota(headers, "requests", now_ms),
        tokens=_quota(headers, "tokens", now_ms),
        input_tokens=_quota(headers, "input-tokens", now_ms),
        output_tokens=_quota(headers, "output-tokens", now_ms),
        retry_at_ms=_retry_at_ms(headers, now_ms),
    )
    return None if found == Allowance() else found


def _quota(headers: Mapping[str, str], kind: str, now_ms: int) -> Quota:
    def told(word: str) -> str:
        return headers.get(f"x-ratelimit-{word}-{kind}") or headers.get(f"{_ANTHROPIC}{kind}-{word}") or ""

    return Quota(_whole(told("limit")), _whole(told("remaining")), _time_ms(told("reset"), now_ms))


def _retry_at_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    after_ms = _number(headers.get("retry-after-ms", ""))
    if after_ms is not None:
        return now_ms + math.ceil(after_ms)
    return _time_ms(headers.get("retry-after", ""), now_ms)


def _time_ms(text: str, now_ms: int) -> int | None:
    """A moment, from seconds, a span, or a date in either of two ways; None if it is none of these."""
    text = text.strip()
    seconds = _number(text)
    if seconds is None:
        seconds = _span_s(text)
    if seconds is not None:
        return now_ms + math.ceil(min(seconds, _LONGEST_S) * 1000)
    moment = _date(text)
    return None if moment is None else math.ceil(moment.timestamp() * 1000)


def _span_s(text: str) -> float | None:
    parts = _SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _UNIT_S[unit] for number, unit in parts))


def _date(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, email.utils.parsedate_to_datetime):
        try:
            moment = read(text)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            continue
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _whole(text: str) -> int | None:
    number = _number(text)
    return None if number is None else int(number)
