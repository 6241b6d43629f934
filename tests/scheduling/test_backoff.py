"""How long to wait before the next attempt."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bullpen import Failure, custom, exponential, fixed
from bullpen.job.spec import Backoff
from bullpen.scheduling.backoff import delay_ms

FAILURE = Failure("broken", type="ValueError")

attempts = st.integers(1, 1_000_000)
delays = st.integers(0, 10 * 86_400_000)
caps = st.integers(0, 10 * 86_400_000)
jitters = st.floats(0, 1)
chances = st.floats(0, 1, exclude_max=True)
kinds = st.sampled_from(["fixed", "exponential", "unknown"])


@given(kinds, delays, jitters, caps, attempts, chances)
def test_the_cap_holds_whatever_else_is_asked(
    kind: str, base: int, jitter: float, cap: int, attempt: int, chance: float
) -> None:
    wait = delay_ms(Backoff(kind, base, jitter, cap), attempt, FAILURE, vary=lambda: chance)
    assert wait is not None
    assert 0 <= wait <= cap


@given(kinds, delays, jitters, caps, attempts, chances)
def test_jitter_stays_within_its_share(
    kind: str, base: int, jitter: float, cap: int, attempt: int, chance: float
) -> None:
    plain = delay_ms(Backoff(kind, base, 0.0, cap), attempt, FAILURE)
    varied = delay_ms(Backoff(kind, base, jitter, cap), attempt, FAILURE, vary=lambda: chance)
    assert plain is not None
    assert varied is not None
    assert plain * (1 - jitter) - 1 <= varied <= plain * (1 + jitter) + 1


def test_jitter_spreads_to_both_sides() -> None:
    backoff = fixed(10, jitter=0.2)
    assert delay_ms(backoff, 1, FAILURE, vary=lambda: 0.0) == 8_000
    assert delay_ms(backoff, 1, FAILURE, vary=lambda: 0.5) == 10_000
    assert delay_ms(backoff, 1, FAILURE, vary=lambda: 1.0) == 12_000


def test_jitter_varies_by_chance() -> None:
    found = {delay_ms(fixed(1_000, jitter=1), 1, FAILURE) for _ in range(50)}
    assert len(found) > 1


@given(delays, attempts)
def test_fixed_is_always_the_same(base: int, attempt: int) -> None:
    assert delay_ms(Backoff("fixed", base, max_delay_ms=base), attempt, FAILURE) == base


@given(st.integers(1, 1_000), st.integers(1, 20))
def test_exponential_doubles(base: int, attempt: int) -> None:
    backoff = Backoff("exponential", base, max_delay_ms=2**60)
    before, after = delay_ms(backoff, attempt, FAILURE), delay_ms(backoff, attempt + 1, FAILURE)
    assert before == base * 2 ** (attempt - 1)
    assert after == base * 2**attempt


@given(delays, caps, attempts)
def test_exponential_never_shrinks(base: int, cap: int, attempt: int) -> None:
    backoff = Backoff("exponential", base, max_delay_ms=cap)
    before, after = delay_ms(backoff, attempt, FAILURE), delay_ms(backoff, attempt + 1, FAILURE)
    assert before is not None
    assert after is not None
    assert after >= before


def test_exponential_as_it_is_written() -> None:
    backoff = exponential(1, max_delay=10)
    assert [delay_ms(backoff, n, FAILURE) for n in range(1, 7)] == [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]


# ── custom ───────────────────────────────────────────────────────────────────────────────


def test_custom_is_asked_with_the_attempts_and_the_failure() -> None:
    asked: list[tuple[int, Failure]] = []

    def mine(attempts_made: int, failure: Failure) -> float:
        asked.append((attempts_made, failure))
        return 1.5 * attempts_made

    assert delay_ms(custom("mine"), 3, FAILURE, {"mine": mine}) == 4_500
    assert asked == [(3, FAILURE)]


@given(st.floats(max_value=0, exclude_max=True, allow_nan=False))
def test_custom_gives_up_with_less_than_nothing(seconds: float) -> None:
    assert delay_ms(custom("mine"), 1, FAILURE, {"mine": lambda n, failure: seconds}) is None


@given(st.floats(0, 1e9), attempts)
def test_custom_is_not_varied_or_capped(seconds: float, attempt: int) -> None:
    """It says what it means."""
    assume(seconds >= 0)
    assert delay_ms(custom("mine"), attempt, FAILURE, {"mine": lambda n, failure: seconds}) == round(seconds * 1_000)


@pytest.mark.parametrize(
    "given_to_worker", [None, {}, {"another": lambda n, failure: 99}], ids=["none", "empty", "other"]
)
def test_custom_without_its_function_is_fixed(given_to_worker: dict[str, object] | None) -> None:
    """A worker that was not given the function still waits for the base that the producer named."""
    known = given_to_worker  # what a worker may have been given
    assert delay_ms(custom("mine", 3), 5, FAILURE, known) == 3_000  # type: ignore[arg-type]
