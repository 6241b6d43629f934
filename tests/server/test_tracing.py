"""One trace from an HTTP request, over the job that it adds, to that job's child."""

import asyncio
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from bullpen import Bullpen, Context
from bullpen.records.records import Records
from bullpen.server.settings import ServerSettings
from bullpen.server.site import opened_site
from bullpen.telemetry.tracing import Tracing
from tests.server.calling import client_of
from tests.support.places import Place

_TRACE, _CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider)


async def test_one_trace_from_a_request_over_the_job_to_its_child(
    place: Place, address: str, settings: ServerSettings, tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    pen = Bullpen(place.store(), telemetry=[tracing])

    @pen.job(queue="receipts")
    async def receipt(ctx: Context) -> None: ...

    @pen.job(queue="orders")
    async def order(ctx: Context) -> None:
        await ctx.step("charge", lambda: 1)
        await receipt.options(id="receipt-1").add()

    records = await Records.open(address)
    async with pen, opened_site(pen, records, settings) as site, client_of(site) as client:
        worker = pen.worker()
        working = asyncio.create_task(worker.run())  # awaited below
        called = {"traceparent": f"00-{_TRACE}-{_CALLER}-01"}
        added = await client.post("/v1/queues/orders/jobs", {"name": "order"}, status=201, **called)
        await pen.queue("orders").job(added["id"]).result(timeout=60)
        await receipt.job("receipt-1").result(timeout=60)
        shown = await client.get(f"/v1/queues/orders/jobs/{added['id']}")
        worker.stop()
        await working
    spans = {span.name: span for span in exporter.get_finished_spans() if _trace_of(span) == _TRACE}
    assert _line(spans["process receipts"], spans) == [
        _CALLER,
        "POST /v1/queues/{queue}/jobs",
        "send orders",
        "process orders",
        "send receipts",
        "process receipts",
    ]
    request = spans["POST /v1/queues/{queue}/jobs"]
    assert request.kind == SpanKind.SERVER
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 201
    assert shown["trace_id"] == _TRACE


@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_a_trace_names_no_credentials(
    place: Place,
    address: str,
    settings: ServerSettings,
    tracing: Tracing,
    exporter: InMemorySpanExporter,
    tmp_path: Path,
) -> None:
    pen = Bullpen(place.store(), telemetry=[tracing])
    records = await Records.open(address)
    async with pen, opened_site(pen, records, settings) as site, client_of(site) as client:
        await client.call("GET", "/v1/me", status=401, headers={"Authorization": "Bearer bp_secret"})
    (span,) = exporter.get_finished_spans()
    assert "bp_secret" not in span.to_json()


def _trace_of(span: ReadableSpan) -> str:
    return "" if span.context is None else f"{span.context.trace_id:032x}"


def _line(span: ReadableSpan, spans: dict[str, ReadableSpan]) -> list[str]:
    """From the root of the trace down to this span; the caller's own, which is elsewhere, by its id."""
    assert span.parent is not None
    above = next((one for one in spans.values() if one.context and one.context.span_id == span.parent.span_id), None)
    return [*([f"{span.parent.span_id:016x}"] if above is None else _line(above, spans)), span.name]
