"""What is shipped for Prometheus and Grafana fits what Bullpen tells."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from bullpen.observing import ModelCall, PoolSeen, TaskEnd, ToolUse
from bullpen.telemetry.agent_metrics import AgentMetrics
from bullpen.telemetry.gauges import ProviderGauges, RecordsGauges, RunGauges, StoreGauges, WorkerGauges
from bullpen.telemetry.metrics import Metrics
from bullpen.telemetry.registry import Histogram, Registry
from tests.docs.pages import REFERENCE, ROOT, rows, section
from tests.support.promtool import promtool
from tests.telemetry.test_health import Setting, options, setting

__all__ = ["options", "setting"]

_RULES = ROOT / "deploy" / "prometheus" / "bullpen.rules.yml"
_GRAFANA = ROOT / "deploy" / "grafana"
_METRIC = re.compile(r"\bbullpen_[a-z_]+")


def _all_metrics() -> Metrics:
    metrics = Metrics(tenants=1)
    for gauges in (StoreGauges, WorkerGauges, RunGauges, ProviderGauges, RecordsGauges):
        gauges(metrics.registry)
    return metrics


def _series() -> set[str]:
    """The names that a query may use."""
    found = set()
    for metric in _all_metrics().metrics:
        parts = ("_bucket", "_sum", "_count") if isinstance(metric, Histogram) else ("",)
        found |= {metric.name + part for part in parts}
    return found


async def test_promtool_finds_nothing_wrong_with_the_metrics(setting: Setting) -> None:
    """Of a real worker that has done something."""
    await setting.until("/health/ready", 200)
    await setting.pen.queue("mail").add("broken")
    while 'outcome="failed"' not in (text := (await setting.ask("/metrics")).text):
        pass
    assert promtool("check", "metrics", given=text) == ""


def test_promtool_finds_nothing_wrong_with_what_is_told_of_agents() -> None:
    metrics = Metrics()
    metrics.model_called(ModelCall("openai", "gpt", "answered", 1.5, 10, 20))
    metrics.tool_used(ToolUse("look", "completed", 0.2))
    metrics.task_ended(
        TaskEnd("agent_run", "completed", is_run=True, micro_credits=1_500_000, refunded=500_000, estimate=750_000)
    )
    metrics.credits_set_aside("agent_run", 750_000)
    metrics.overrun(250_000)
    metrics.sandbox_asked(0.1, is_lent=True)
    metrics.sandbox_asked(30, is_lent=False)
    metrics.pool_changed(PoolSeen(warm=2, in_use=1, most=10))
    text = metrics.text()
    AgentMetrics(registry := Registry())
    assert {f"# TYPE {metric.name} {metric.kind}" for metric in registry.metrics} <= set(text.splitlines())
    assert 'bullpen_credits_charged_total{kind="agent_run"} 1.5' in text
    assert 'bullpen_credits_refunded_total{kind="agent_run",reason="completed"} 0.5' in text
    assert 'bullpen_credits_reserved_total{kind="agent_run",share="estimate"} 0.75' in text
    assert 'bullpen_credits_reserved_total{kind="agent_run",share="more"} 1.25' in text
    assert "bullpen_credits_overrun_total 0.25" in text
    assert promtool("check", "metrics", given=text) == ""


def test_promtool_takes_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", _RULES)


@pytest.mark.parametrize("path", [_RULES, _GRAFANA / "bullpen.json"], ids=lambda path: path.name)
def test_every_metric_that_is_asked_for_exists(path: Path) -> None:
    asked = set(_METRIC.findall(path.read_text()))
    assert asked
    assert asked <= _series()


def test_the_dashboard_is_as_its_program_writes_it() -> None:
    spec = importlib.util.spec_from_file_location("dashboard", _GRAFANA / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = json.loads((_GRAFANA / "bullpen.json").read_text())
    assert written == module.dashboard()


def test_the_dashboard_has_what_grafana_needs() -> None:
    board = json.loads((_GRAFANA / "bullpen.json").read_text())
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= board.keys()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    places = set()
    for panel in board["panels"]:
        assert {"type", "title", "gridPos", "targets", "datasource", "fieldConfig"} <= panel.keys()
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        places.add((place["x"], place["y"]))
        assert all(target["expr"] and target["refId"] for target in panel["targets"])
    assert len(places) == len(board["panels"])


def test_every_metric_has_its_line_in_the_reference() -> None:
    text = section(REFERENCE / "metrics.md", "## Metrics")
    documented = {row[0]: (row[1], tuple(re.findall(r"`([a-z]+)`", row[2]))) for row in rows(text)}
    metrics = Metrics()
    for gauges in (StoreGauges, WorkerGauges, RunGauges, ProviderGauges, RecordsGauges):
        gauges(metrics.registry)
    assert documented == {metric.name: (metric.kind, metric.labels) for metric in metrics.metrics}


_OF_OTHERS = {
    "bullmq_jobs_total",
    "bullmq_jobs_duration_seconds",
    "bullmq_jobs_active",
    "bullmq_jobs_waiting",
    "bullmq_jobs_retries_total",
    "bullmq_workers_active",
    "bullmq_worker_info",
    "bullmq_sandbox_pool_size",
    "bullmq_sandbox_pool_available",
    "bullmq_sandbox_acquisition_seconds",
    "bullmq_credits_reserved_total",
    "bullmq_credits_charged_total",
    "bullmq_credits_refunded_total",
    "bullmq_tool_executions_total",
    "bullmq_tool_duration_seconds",
    "bullmq_llm_calls_total",
    "bullmq_llm_tokens_total",
    "bullmq_llm_latency_seconds",
}
"""What one who comes from there looks for."""


def test_the_names_of_others_are_mapped_to_ours() -> None:
    text = section(REFERENCE / "metrics.md", "## Names used elsewhere")
    elsewhere = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(bullmq_[a-z_]+)", elsewhere)) == _OF_OTHERS
    asked = set(_METRIC.findall(text))
    assert asked
    assert asked <= {metric.name for metric in _all_metrics().metrics}
