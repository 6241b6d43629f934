"""One trace from whoever adds a job to the last of its children."""

import asyncio
from collections.abc import Sequence

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from bullpen import Context
from bullpen.telemetry.tracing import Tracing
from tests.telemetry.conftest import MakePen, Work


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


async def _spans(exporter: InMemorySpanExporter, count: int) -> dict[str, ReadableSpan]:
    """By name, once that many have ended: a span ends a moment after its job's result is there."""
    while len(exporter.get_finished_spans()) < count:
        await asyncio.sleep(0)
    return {span.name: span for span in exporter.get_finished_spans()}


def _line(span: ReadableSpan, spans: Sequence[ReadableSpan]) -> list[str]:
    """The names from the root of the trace down to this span."""
    by_id = {one.context.span_id: one for one in spans if one.context}
    above = [] if span.parent is None else _line(by_id[span.parent.span_id], spans)
    return [*above, span.name]


async def test_one_trace_from_the_producer_over_the_job_to_its_child(
    make_pen: MakePen, work: Work, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    pen = make_pen(Tracing(provider))

    @pen.job(queue="receipts")
    async def receipt(ctx: Context) -> str:
        return ctx.headers["traceparent"]

    @pen.job(queue="orders")
    async def order(ctx: Context) -> None:
        await ctx.step("charge", lambda: 1)
        await receipt.options(id="receipt-1").add()

    work(pen)
    with trace.get_tracer("shop", tracer_provider=provider).start_as_current_span("POST /orders"):
        added = await order.options(tenant="acme").add()
    await added.result(timeout=60)
    carried = await receipt.job("receipt-1").result(timeout=60)
    spans = await _spans(exporter, 6)
    assert len({span.context.trace_id for span in spans.values() if span.context}) == 1
    assert _line(spans["process receipts"], list(spans.values())) == [
        "POST /orders",
        "send orders",
        "process orders",
        "send receipts",
        "process receipts",
    ]
    assert _line(spans["step charge"], list(spans.values()))[-2:] == ["process orders", "step charge"]
    sent, processed = spans["send orders"], spans["process orders"]
    assert (sent.kind, processed.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert processed.attributes is not None
    assert processed.attributes["messaging.system"] == "bullpen"
    assert processed.attributes["messaging.destination.name"] == "orders"
    assert processed.attributes["messaging.message.id"] == added.id
    assert processed.attributes["bullpen.tenant"] == "acme"
    assert processed.attributes["bullpen.job.outcome"] == "completed"
    last = spans["send receipts"].context
    assert last is not None
    assert carried.startswith(f"00-{last.trace_id:032x}-{last.span_id:016x}-")


async def test_children_and_follow_ups_are_part_of_the_trace(
    make_pen: MakePen, work: Work, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    pen = make_pen(Tracing(provider))

    @pen.job(queue="parts")
    async def part(ctx: Context) -> None: ...

    @pen.job(queue="after")
    def after(ctx: Context) -> None: ...

    @pen.job(queue="whole")
    def whole(ctx: Context) -> None:
        # In a thread: the span is there too.
        assert trace.get_current_span().get_span_context().is_valid
        ctx.then(after.options(id="after-1").prepare())

    work(pen)
    with trace.get_tracer("shop", tracer_provider=provider).start_as_current_span("request"):
        tree = await pen.flow(whole.prepare(), [part.prepare()])
    await tree.result(timeout=60)
    await after.job("after-1").result(timeout=60)
    spans = await _spans(exporter, 6)
    everything = list(spans.values())
    assert _line(spans["process parts"], everything) == ["request", "send whole", "process parts"]
    assert _line(spans["process after"], everything)[-3:] == ["process whole", "send after", "process after"]


async def test_a_retry_is_linked_to_the_attempt_before(
    make_pen: MakePen, work: Work, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    pen = make_pen(Tracing(provider))

    @pen.job(attempts=2)
    async def second_time_lucky(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("not yet")

    work(pen)
    await (await second_time_lucky.add()).result(timeout=60)
    await _spans(exporter, 3)
    first, second = [span for span in exporter.get_finished_spans() if span.name == "process default"]
    assert first.status.status_code == StatusCode.ERROR
    assert first.attributes is not None
    assert first.attributes["error.type"] == "ConnectionError"
    assert first.context is not None
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert second.parent == first.parent or (
        second.parent is not None and first.parent is not None and second.parent.span_id == first.parent.span_id
    )


async def test_a_job_without_context_begins_a_trace_of_its_own(
    make_pen: MakePen, work: Work, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    """Also where the worker itself was started inside a span."""
    plain, traced = make_pen(), make_pen(Tracing(provider))

    @traced.job
    async def lonely(ctx: Context) -> None: ...

    with trace.get_tracer("main", tracer_provider=provider).start_as_current_span("main"):
        work(traced)
    job = await plain.queue("default").add("lonely")
    await job.result(timeout=60)
    spans = await _spans(exporter, 2)
    assert spans["process default"].parent is None
