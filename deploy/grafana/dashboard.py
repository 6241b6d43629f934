"""Writes the dashboard: `python deploy/grafana/dashboard.py > deploy/grafana/bullpen.json`."""

import json
import sys
from typing import Any

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT = 8, 7
_QUEUES = 'queue=~"$queue"'

Query = tuple[str, str]
"""What to ask Prometheus, and how the line is called."""

_P95 = "histogram_quantile(0.95, sum by (queue, le) (rate({}_bucket{{{}}}[$__rate_interval])))"
_P50 = "histogram_quantile(0.5, sum by (queue, le) (rate({}_bucket{{{}}}[$__rate_interval])))"
PANELS: list[tuple[str, str, list[Query]]] = [
    ("Waiting", "short", [
        (f'sum by (queue) (max by (queue, state) (bullpen_queue_jobs{{{_QUEUES},state=~"waiting|prioritized"}}))', "{{queue}}"),
    ]),
    ("Oldest waiting", "s", [(f"max by (queue) (bullpen_queue_oldest_waiting_seconds{{{_QUEUES}}})", "{{queue}}")]),
    ("Dead letters", "short", [(f'max by (queue) (bullpen_queue_jobs{{{_QUEUES},state="failed"}})', "{{queue}}")]),
    ("Finished", "ops", [
        (f"sum by (queue, outcome) (rate(bullpen_jobs_total{{{_QUEUES}}}[$__rate_interval]))", "{{queue}} {{outcome}}"),
    ]),
    ("Added", "ops", [
        (f"sum by (queue) (rate(bullpen_jobs_added_total{{{_QUEUES}}}[$__rate_interval]))", "{{queue}}"),
    ]),
    ("Retries by reason", "ops", [
        (f"sum by (queue, reason) (rate(bullpen_job_retries_total{{{_QUEUES}}}[$__rate_interval]))", "{{queue}} {{reason}}"),
    ]),
    ("Wait", "s", [
        (_P50.format("bullpen_job_wait_seconds", _QUEUES), "{{queue}} p50"),
        (_P95.format("bullpen_job_wait_seconds", _QUEUES), "{{queue}} p95"),
    ]),
    ("Duration", "s", [
        (_P50.format("bullpen_job_duration_seconds", _QUEUES), "{{queue}} p50"),
        (_P95.format("bullpen_job_duration_seconds", _QUEUES), "{{queue}} p95"),
    ]),
    ("Active and delayed", "short", [
        (f'max by (queue, state) (bullpen_queue_jobs{{{_QUEUES},state=~"active|delayed"}})', "{{queue}} {{state}}"),
    ]),
    ("Slots busy", "percentunit", [
        (f"sum by (queue) (bullpen_worker_slots_busy{{{_QUEUES}}}) / sum by (queue) (bullpen_worker_slots{{{_QUEUES}}})", "{{queue}}"),
    ]),
    ("Workers", "short", [("max by (state) (bullpen_workers)", "{{state}}")]),
    ("Stalls, crashes, lost leases", "short", [
        (f"sum by (queue) (increase(bullpen_jobs_stalled_total{{{_QUEUES}}}[$__rate_interval]))", "{{queue}} stalled"),
        (f"sum by (queue, kind) (increase(bullpen_job_crashes_total{{{_QUEUES}}}[$__rate_interval]))", "{{queue}} {{kind}}"),
        (f"sum by (queue) (increase(bullpen_leases_lost_total{{{_QUEUES}}}[$__rate_interval]))", "{{queue}} lease lost"),
    ]),
    ("Store latency", "s", [("max(bullpen_store_latency_seconds)", "slowest look")]),
    ("Event loops held up", "s", [("max by (instance) (bullpen_worker_loop_silent_seconds)", "{{instance}}")]),
    ("Steps", "ops", [
        ("sum by (kind, outcome) (rate(bullpen_steps_total[$__rate_interval]))", "{{kind}} {{outcome}}"),
    ]),
    ("Calls of models", "ops", [
        ("sum by (provider, model, outcome) (rate(bullpen_llm_calls_total[$__rate_interval]))", "{{provider}} {{model}} {{outcome}}"),
    ]),
    ("Models: time of a call", "s", [
        ("histogram_quantile(0.95, sum by (model, le) (rate(bullpen_llm_call_seconds_bucket[$__rate_interval])))", "{{model}} p95"),
    ]),
    ("Tokens", "ops", [
        ("sum by (model, direction) (rate(bullpen_llm_tokens_total[$__rate_interval]))", "{{model}} {{direction}}"),
    ]),
    ("Calls of tools", "ops", [
        ("sum by (tool, outcome) (rate(bullpen_tool_calls_total[$__rate_interval]))", "{{tool}} {{outcome}}"),
    ]),
    ("Tools: time of a call", "s", [
        ("histogram_quantile(0.95, sum by (tool, le) (rate(bullpen_tool_call_seconds_bucket[$__rate_interval])))", "{{tool}} p95"),
    ]),
    ("Runs that ended", "short", [
        ("sum by (state) (increase(bullpen_runs_total[$__rate_interval]))", "{{state}}"),
        ("sum by (kind, state) (increase(bullpen_tasks_total[$__rate_interval]))", "{{kind}} {{state}}"),
    ]),
    ("Credits charged", "short", [("sum(increase(bullpen_credits_charged_total[$__rate_interval]))", "credits")]),
    ("Sandboxes", "short", [
        ("sum by (state) (bullpen_sandboxes)", "{{state}}"),
        ("sum(bullpen_sandboxes_most)", "at most"),
    ]),
    ("Waits for a sandbox", "s", [
        ("histogram_quantile(0.95, sum by (le) (rate(bullpen_sandbox_acquire_seconds_bucket[$__rate_interval])))", "p95"),
    ]),
]  # fmt: skip


def _panel(n: int, title: str, unit: str, queries: list[Query]) -> dict[str, Any]:
    return {
        "id": n + 1,
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "gridPos": {"x": n % 3 * _WIDTH, "y": n // 3 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + m), "datasource": _SOURCE, "expr": expr, "legendFormat": legend}
            for m, (expr, legend) in enumerate(queries)
        ],
    }


def _variable(name: str, label: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "label": label, "hide": 0, **more}


def dashboard() -> dict[str, Any]:
    return {
        "uid": "bullpen",
        "title": "Bullpen",
        "tags": ["bullpen"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                _variable("source", "Prometheus", type="datasource", query="prometheus"),
                _variable(
                    "queue",
                    "Queue",
                    type="query",
                    datasource=_SOURCE,
                    query="label_values(bullpen_queue_jobs, queue)",
                    refresh=2,
                    multi=True,
                    includeAll=True,
                    allValue=".*",
                    current={"text": "All", "value": "$__all"},
                ),
            ]
        },
        "panels": [_panel(n, *panel) for n, panel in enumerate(PANELS)],
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=2)
    sys.stdout.write("\n")
