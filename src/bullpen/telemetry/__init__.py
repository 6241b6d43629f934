"""Metrics, traces, logs and health: observers of the rooms below, which know nothing of them.

`Tracing` is in `bullpen.telemetry.tracing`, since it needs the extra `otel`.
"""

from bullpen.telemetry.checks import HealthOptions
from bullpen.telemetry.health import HealthServer
from bullpen.telemetry.http import Place
from bullpen.telemetry.logs import JobIds, JsonFormatter
from bullpen.telemetry.metrics import Metrics

__all__ = ["HealthOptions", "HealthServer", "JobIds", "JsonFormatter", "Metrics", "Place"]
