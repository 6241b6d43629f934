"""From what people write, in seconds, to what is stored, in milliseconds."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen import BadOption, JobOptions, custom, debounce, dedup, exponential, fixed, keep
from bullpen.job.options import OptionFields, to_ms, with_options
from bullpen.job.spec import KEEP_ALL, KEEP_COMPLETED, Backoff, Dedup, JobSpec, Keep

NOW_MS = 1_750_000_000_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC)
HERE = timezone(timedelta(hours=5, minutes=30))


@pytest.mark.parametrize(
    "options, spec",
    [
        ({}, {}),
        ({"delay": 1.5}, {"delay_ms": 1_500}),
        ({"delay": timedelta(minutes=2)}, {"delay_ms": 120_000}),
        ({"delay": 0.0004}, {"delay_ms": 0}),
        ({"run_at": NOW + timedelta(seconds=3)}, {"delay_ms": 3_000}),
        ({"run_at": (NOW + timedelta(seconds=3)).astimezone(HERE)}, {"delay_ms": 3_000}),
        ({"run_at": NOW - timedelta(days=3)}, {"delay_ms": 0}),
        ({"priority": 2_097_151}, {"priority": 2_097_151}),
        ({"lifo": True}, {"lifo": True}),
        ({"attempts": 5}, {"attempts": 5}),
        ({"backoff": 2}, {"backoff": Backoff("fixed", 2_000)}),
        ({"backoff": timedelta(seconds=2)}, {"backoff": Backoff("fixed", 2_000)}),
        ({"backoff": fixed(2, jitter=0.5)}, {"backoff": Backoff("fixed", 2_000, 0.5)}),
        ({"backoff": exponential(1, max_delay=60)}, {"backoff": Backoff("exponential", 1_000, 0.0, 60_000)}),
        ({"backoff": exponential(1)}, {"backoff": Backoff("exponential", 1_000, 0.0, 3_600_000)}),
        ({"backoff": custom("mine", 3)}, {"backoff": Backoff("mine", 3_000)}),
        ({"timeout": 30}, {"timeout_ms": 30_000}),
        ({"start_by": 10}, {"start_by_ms": NOW_MS + 10_000}),
        ({"start_by": NOW + timedelta(seconds=10)}, {"start_by_ms": NOW_MS + 10_000}),
        ({"tenant": "acme"}, {"tenant": "acme"}),
        ({"tags": ["a", "b"]}, {"tags": ("a", "b")}),
        ({"headers": {"trace": "1", "empty": ""}}, {"headers": {"trace": "1", "empty": ""}}),
        ({"dedup": "subject"}, {"dedup": Dedup("subject")}),
        ({"dedup": dedup("subject", ttl=5)}, {"dedup": Dedup("subject", 5_000)}),
        ({"dedup": debounce("subject", 5)}, {"dedup": Dedup("subject", 5_000, extend=True, replace=True)}),
        ({"keep_completed": keep(10)}, {"keep_completed": Keep(10)}),
        ({"keep_completed": keep(age=60)}, {"keep_completed": Keep(None, 60_000)}),
        ({"keep_completed": keep()}, {"keep_completed": KEEP_ALL}),
        ({"keep_failed": keep(0)}, {"keep_failed": Keep(0)}),
        ({"keep_logs": 0}, {"keep_logs": 0}),
        ({"keep_stacks": 1}, {"keep_stacks": 1}),
    ],
    ids=str,
)
def test_options_become_this_spec(options: dict[str, Any], spec: dict[str, Any]) -> None:
    assert JobOptions(**options).to_spec(NOW_MS) == JobSpec(**spec)


def test_the_defaults_are_the_spec_s_own() -> None:
    assert JobOptions().to_spec(NOW_MS) == JobSpec()
    assert (JobSpec().keep_completed, JobSpec().keep_failed) == (KEEP_COMPLETED, KEEP_ALL)


def test_the_type_checker_knows_every_option() -> None:
    assert OptionFields.__annotations__.keys() == {field.name for field in dataclasses.fields(JobOptions)}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"backoff": exponential(1, jitter=0.5), "dedup": debounce("s", 5), "tags": ["a"], "headers": {"a": "b"}},
        {"keep_completed": keep(0), "keep_failed": keep(age=60), "start_by": 5, "timeout": 9, "lifo": True},
    ],
)
def test_a_spec_is_read_as_it_was_written(options: dict[str, Any]) -> None:
    spec = JobOptions(**options).to_spec(NOW_MS)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=JobSpec) == spec


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    assert msgspec.json.decode(b'{"attempts":3,"colour":"red"}', type=JobSpec) == JobSpec(attempts=3)


def test_options_over_a_base_change_only_what_they_name() -> None:
    base = JobOptions(attempts=3, priority=1)
    assert with_options(base, {}) is base
    assert with_options(base, {"priority": 2}) == JobOptions(attempts=3, priority=2)


def test_options_over_a_base_are_checked_together() -> None:
    with pytest.raises(BadOption, match="not both"):
        with_options(JobOptions(delay=5), {"run_at": NOW})


@given(st.integers(0, 3_000_000_000))
def test_whole_seconds_are_exact(seconds: int) -> None:
    assert to_ms("delay", seconds) == to_ms("delay", timedelta(seconds=seconds)) == seconds * 1_000


@given(st.integers() | st.floats())
def test_any_number_is_a_time_or_refused_by_name(number: float) -> None:
    if 0 <= number <= 100 * 366 * 86_400:
        assert to_ms("delay", number) == round(number * 1000)
    else:
        with pytest.raises(BadOption, match=r"^delay: "):
            to_ms("delay", number)
