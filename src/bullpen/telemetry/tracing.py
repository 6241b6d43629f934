"""OpenTelemetry: one trace from whoever adds a job, over the job and its steps, to the jobs that it adds.

    POST /v1/queues/{queue}/jobs      where the server's API adds it, below its caller's span
     └─ send mail              the context of this one travels in the job's headers
         └─ process mail       one for each attempt, linked to the one before
             ├─ step charge
             └─ send receipts
                 └─ process receipts

Needs the extra `otel`. On Redis the context stands where BullMQ's own telemetry puts it, so that a
trace goes on in Node, and from there.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, TracerProvider

from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Cancelled, Failed, Released, Retry, Verdict
from bullpen.observing import Adding, Attempt, Observer, RequestAtWork, StepAtWork

SYSTEM = "bullpen"
_REMEMBERED = 10_000
"""Attempts that failed here, so that the next one can be linked to them."""

Attributes = dict[str, str | int | bool]


class Tracing(Observer):
    """Spans for adds, attempts and steps. Payloads are in none of them.

    Without a provider the global one is used, which does nothing until an SDK is set up.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, *, propagator: TextMapPropagator | None = None
    ) -> None:
        self._tracer = trace.get_tracer("bullpen", tracer_provider=tracer_provider)
        self._propagator = propagator
        self._failed: OrderedDict[JobRef, SpanContext] = OrderedDict()

    @contextlib.contextmanager
    def adding(self, adding: Adding) -> Iterator[None]:
        first = adding.jobs[0]
        attributes = _about_queue(first.queue, "send") | _about_new(adding.jobs)
        with self._tracer.start_as_current_span(
            f"send {first.queue}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            headers = self._headers()
            adding.jobs[:] = [_with_headers(job, headers) for job in adding.jobs]
            yield
            if len(adding.added) == 1:
                span.set_attribute("messaging.message.id", adding.added[0].id)

    @contextlib.contextmanager
    def requesting(self, request: RequestAtWork) -> Iterator[None]:
        with self._tracer.start_as_current_span(
            request.method,
            context=self._context_of(request.headers),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": request.method},
        ) as span:
            yield
            if request.route is not None:
                span.update_name(f"{request.method} {request.route}")
                span.set_attribute("http.route", request.route)
            if request.status is not None:
                span.set_attribute("http.response.status_code", request.status)
                if request.status >= 500:
                    span.set_status(StatusCode.ERROR)

    @contextlib.contextmanager
    def attempting(self, attempt: Attempt) -> Iterator[None]:
        job = attempt.job
        with self._tracer.start_as_current_span(
            f"process {job.queue}",
            context=self._context_of(job.spec.headers),
            kind=SpanKind.CONSUMER,
            attributes=_about_queue(job.queue, "process") | _about_job(job),
            links=self._links(job.ref),
        ) as span:
            yield
            self._tell_verdict(span, job, attempt.verdict)

    @contextlib.contextmanager
    def stepping(self, step: StepAtWork) -> Iterator[None]:
        attributes: Attributes = {
            "bullpen.step.name": step.name,
            "bullpen.step.kind": step.kind.value,
            "bullpen.step.attempt": step.attempt,
        }
        with self._tracer.start_as_current_span(f"{step.kind} {step.name}", attributes=attributes):
            yield

    # ── the context that travels ─────────────────────────────────────────────────────────

    def _headers(self) -> dict[str, str]:
        carrier: dict[str, str] = {}
        (self._propagator or propagate.get_global_textmap()).inject(carrier)
        return carrier

    def _context_of(self, headers: Mapping[str, str]) -> Context:
        # From the headers alone: what the worker's own loop happens to be in is not the job's parent.
        return (self._propagator or propagate.get_global_textmap()).extract(headers, Context())

    def _links(self, ref: JobRef) -> Sequence[Link]:
        before = self._failed.pop(ref, None)
        return () if before is None else (Link(before, {"bullpen.link": "previous attempt"}),)

    def _tell_verdict(self, span: Span, job: JobRecord, verdict: Verdict | None) -> None:
        outcome = "lost" if verdict is None else type(verdict).__name__.lower()
        span.set_attribute("bullpen.job.outcome", outcome)
        match verdict:
            case Retry(failure) | Failed(failure):
                span.set_attribute("error.type", failure.type or failure.kind.value)
                span.set_status(StatusCode.ERROR, failure.kind.value)
                span.add_event("exception", {"exception.type": failure.type, "exception.stacktrace": failure.stack})
            case Cancelled():
                span.set_attribute("error.type", "cancelled")
            case _:
                pass
        if isinstance(verdict, Retry | Released):
            self._failed[job.ref] = span.get_span_context()
            if len(self._failed) > _REMEMBERED:
                self._failed.popitem(last=False)


def _with_headers(job: NewJob, headers: Mapping[str, str]) -> NewJob:
    """The whole tree, each job with these; what its producer set stands."""
    return msgspec.structs.replace(
        job,
        spec=msgspec.structs.replace(job.spec, headers={**headers, **job.spec.headers}),
        children=tuple(_with_headers(child, headers) for child in job.children),
    )


def _about_queue(queue: str, operation: str) -> Attributes:
    """As the semantic conventions for messaging have it."""
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _about_new(jobs: Sequence[NewJob]) -> Attributes:
    if len(jobs) > 1:
        return {"messaging.batch.message_count": len(jobs)}
    (job,) = jobs
    found: Attributes = {"bullpen.job.name": job.name, "messaging.message.body.size": len(job.data)}
    return found | _about_owner(job.spec.tenant, job.spec.workspace)


def _about_job(job: JobRecord) -> Attributes:
    found: Attributes = {
        "messaging.message.id": job.id,
        "messaging.message.body.size": len(job.data),
        "bullpen.job.name": job.name,
        "bullpen.job.attempt": job.attempts_made + 1,
        "bullpen.job.epoch": job.epoch,
    }
    return found | _about_owner(job.tenant, job.spec.workspace)


def _about_owner(tenant: str | None, workspace: str | None) -> Attributes:
    whose = {"bullpen.tenant": tenant, "bullpen.workspace": workspace}
    return {name: value for name, value in whose.items() if value is not None}
