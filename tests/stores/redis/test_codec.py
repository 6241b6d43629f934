"""A spec as BullMQ's options and back, and options as only JavaScript writes them."""

import msgspec
import pytest

from bullpen.job.spec import KEEP_ALL, Backoff, Dedup, JobSpec, Keep, NewJob
from bullpen.stores.redis.codec import decode_options, encode_options

SPECS = [
    JobSpec(),
    JobSpec(priority=7, delay_ms=1500, lifo=True, attempts=9),
    JobSpec(backoff=Backoff("exponential", 250, 0.25, max_delay_ms=5000)),
    JobSpec(backoff=Backoff("mine")),
    JobSpec(timeout_ms=1, start_by_ms=2, tenant="acme", tags=("a", "ü"), headers={"trace": "00-1"}),
    JobSpec(headers={"traceparent": "00-1-2-01", "by": "shop"}),
    JobSpec(dedup=Dedup("s"), keep_completed=KEEP_ALL, keep_failed=Keep(count=0)),
    JobSpec(dedup=Dedup("s", ttl_ms=5, extend=True, replace=True), keep_completed=Keep(count=3)),
    JobSpec(dedup=Dedup("s", keep_last_if_active=True), keep_failed=Keep(age_ms=1500)),
    JobSpec(keep_completed=Keep(count=0, age_ms=1000), keep_logs=0, keep_stacks=0),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_comes_back_as_it_was(spec: JobSpec) -> None:
    assert decode_options(encode_options(NewJob("mail", "welcome", spec=spec))) == spec


@pytest.mark.parametrize(
    "options,expected",
    [
        (b"{}", JobSpec(keep_completed=KEEP_ALL)),
        (b"", JobSpec(keep_completed=KEEP_ALL)),
        (b'{"attempts":0}', JobSpec(keep_completed=KEEP_ALL)),
        (b'{"removeOnComplete":true,"removeOnFail":0}', JobSpec(keep_completed=Keep(0), keep_failed=Keep(0))),
        (b'{"removeOnComplete":-1,"delay":1.7}', JobSpec(keep_completed=KEEP_ALL, delay_ms=1)),
        (b'{"backoff":500}', JobSpec(keep_completed=KEEP_ALL, backoff=Backoff(delay_ms=500))),
        (b'{"tm":"{\\"traceparent\\":\\"00-1\\"}"}', JobSpec(keep_completed=KEEP_ALL, headers={"traceparent": "00-1"})),
        (b'{"tm":"of another kind"}', JobSpec(keep_completed=KEEP_ALL)),
        (b'{"tm":{"traceparent":1}}', JobSpec(keep_completed=KEEP_ALL)),
        (b'{"bullpen":[],"de":{},"lifo":1,"priority":null}', JobSpec(keep_completed=KEEP_ALL)),
    ],
)
def test_whatever_javascript_wrote_is_a_spec(options: bytes, expected: JobSpec) -> None:
    assert decode_options(options) == expected


def test_trace_context_stands_where_the_telemetry_of_bullmq_looks() -> None:
    """As its package writes it: the headers as JSON, in one text."""
    spec = JobSpec(headers={"traceparent": "00-1-2-01", "by": "shop"})
    stored = msgspec.json.decode(encode_options(NewJob("mail", "welcome", spec=spec)))
    assert stored["tm"] == '{"traceparent":"00-1-2-01"}'
    assert stored["bullpen"] == {"headers": {"by": "shop"}}
