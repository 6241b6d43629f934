"""Logs as JSON, one object a line, with the ids of the job that is at work. Payloads are in none of them."""

import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from bullpen.job.record import JobRecord
from bullpen.observing import Attempt, Observer

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_at_work: ContextVar[dict[str, Any] | None] = ContextVar("bullpen_job_at_work", default=None)


class JobIds(Observer):
    """Puts the ids of the job on every line that is logged while its handler runs, by any library."""

    @contextlib.contextmanager
    def attempting(self, attempt: Attempt) -> Iterator[None]:
        token = _at_work.set(ids_of(attempt.job))
        try:
            yield
        finally:
            _at_work.reset(token)


def ids_of(job: JobRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        "queue": job.queue,
        "job_id": job.id,
        "job_name": job.name,
        "attempt": job.attempts_made + 1,
        "tenant": job.tenant,
        "workspace": job.spec.workspace,
    }
    parent = job.spec.headers.get("traceparent", "").split("-")
    if len(parent) >= 4:
        found["trace_id"] = parent[1]
    return found


class JsonFormatter(logging.Formatter):
    """A log record as one line of JSON: time, level, logger, message, ids, what `extra` gave, and the error."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _present(_at_work.get() or {}) | _current_span()
        line |= _present({name: value for name, value in vars(record).items() if name not in _USUAL})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _present(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


def _current_span() -> dict[str, str]:
    """Of the trace that this is part of, if the program traces at all."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return {}
    context = api.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
