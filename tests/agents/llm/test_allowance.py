"""What providers say of their limits, in their headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.agents.llm.allowance import Allowance, Quota, allowance_of

NOW_MS = 1_750_000_000_000  # 2025-06-15 15:06:40 UTC


@pytest.mark.parametrize(
    "text,wait_ms",
    [
        ("7", 7_000),
        ("0.25", 250),
        ("1s", 1_000),
        ("6m0s", 360_000),
        ("1h2m3.5s", 3_723_500),
        ("20ms", 20),
        ("2025-06-15T15:07:40Z", 60_000),
        ("2025-06-15T17:07:40+02:00", 60_000),
        ("Sun, 15 Jun 2025 15:07:40 GMT", 60_000),
        ("999999999", 86_400_000),
    ],
)
def test_a_moment_in_each_way_to_say_it(text: str, wait_ms: int) -> None:
    assert allowance_of({"retry-after": text}, NOW_MS) == Allowance(retry_at_ms=NOW_MS + wait_ms)


@pytest.mark.parametrize("text", ["", "soon", "-3", "nan", "inf", "1x", "m", "1970", "Sun, 99 Jun 2025 15:07:40 GMT"])
def test_what_is_no_moment_or_long_over_holds_nobody(text: str) -> None:
    allowance = allowance_of({"retry-after": text}, NOW_MS) or Allowance()
    assert allowance.hold_s(NOW_MS) <= 1970


def test_openai_s_headers() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "100",
        "x-ratelimit-reset-tokens": "59.8s",
        "retry-after-ms": "12.5",
    }
    allowance = allowance_of(headers, NOW_MS)
    assert allowance == Allowance(
        requests=Quota(500, 499, NOW_MS + 120), tokens=Quota(30_000, 100, NOW_MS + 59_800), retry_at_ms=NOW_MS + 13
    )


def test_anthropic_s_headers() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2025-06-15T15:07:10Z",
        "anthropic-ratelimit-input-tokens-remaining": "40000",
        "anthropic-ratelimit-output-tokens-remaining": "8000",
    }
    allowance = allowance_of(headers, NOW_MS)
    assert allowance == Allowance(
        requests=Quota(50, 0, NOW_MS + 30_000),
        input_tokens=Quota(remaining=40_000),
        output_tokens=Quota(remaining=8_000),
    )
    assert allowance.hold_s(NOW_MS) == 30


def test_nothing_said_is_none() -> None:
    assert allowance_of({"content-type": "text/html"}, NOW_MS) is None


def test_a_call_is_held_back_until_what_it_needs_is_there() -> None:
    tokens = Quota(limit=1_000, remaining=300, resets_ms=NOW_MS + 9_000)
    allowance = Allowance(requests=Quota(10, 5, NOW_MS + 60_000), tokens=tokens)
    assert allowance.hold_s(NOW_MS, needs_tokens=300) == 0
    assert allowance.hold_s(NOW_MS, needs_tokens=301) == 9
    assert allowance.hold_s(NOW_MS + 10_000, needs_tokens=301) == 0
    full = Allowance(tokens=Quota(limit=1_000, remaining=1_000, resets_ms=NOW_MS + 9_000))
    assert full.hold_s(NOW_MS, needs_tokens=5_000) == 0, "it will never have more"


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens"]), st.text()))
def test_no_header_does_harm(headers: dict[str, str]) -> None:
    allowance = allowance_of({**headers, "x-ratelimit-remaining-tokens": "0"}, NOW_MS)
    assert allowance is not None
    assert 0 <= allowance.hold_s(NOW_MS) <= 86_400
