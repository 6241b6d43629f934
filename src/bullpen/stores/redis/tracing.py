"""Trace context where BullMQ carries it: one text in a job's options, so that the traces of Node join ours.

BullMQ leaves that text to its telemetry package, which writes the headers as a JSON object.
"""

from collections.abc import Mapping

import msgspec

TRACE_HEADERS = ("traceparent", "tracestate", "baggage")
"""The names by which W3C Trace Context travels."""


def encode_trace(headers: Mapping[str, str]) -> str | None:
    trace = {name: headers[name] for name in TRACE_HEADERS if name in headers}
    return msgspec.json.encode(trace).decode() if trace else None


def other_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What BullMQ has no word for."""
    return {name: text for name, text in headers.items() if name not in TRACE_HEADERS}


def decode_trace(stored: object) -> dict[str, str]:
    """The headers in it; a text of another kind has none."""
    try:
        carrier = msgspec.json.decode(stored) if isinstance(stored, str) else None
    except msgspec.DecodeError:
        return {}
    if not isinstance(carrier, dict):
        return {}
    return {name: text for name, text in carrier.items() if name in TRACE_HEADERS and isinstance(text, str)}
