"""How to call each route of the server, and what that asks of the caller.

A route that is not here fails the tests that walk over all of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute

PUBLIC = {
    ("GET", "/v1/openapi.json"),
    ("POST", "/v1/login"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    ("GET", "/v1/health/live"),
    ("GET", "/v1/health/ready"),
    ("GET", "/{path:path}"),
}
"""For whoever comes."""


class Call(NamedTuple):
    permission: str
    body: Any = None
    """`ID`, `LEASE` and `QUEUE` in it stand for what the call is about."""
    query: Mapping[str, str] = MappingProxyType({})
    whole: bool = False
    """It concerns all tenants: who has one is refused."""
    streams: bool = False


_JOB = {"name": "work", "data": {"n": 1}}
_THEIRS = {"name": "work", "options": {"tenant": "beta"}}
"""What a caller with another tenant must not add."""
_ONE = [{"queue": "mail", "id": "ID"}]
_PATH = "/v1/queues/{queue}/jobs/{job_id}"
_SCHEDULE = "/v1/queues/{queue}/schedules/{schedule}"
_WEBHOOK = "/v1/webhooks/{webhook_id}"
_TASK = "/v1/tasks/{task_id}"
_RUN = "/v1/runs/{run_id}"
_BUDGET = "/v1/credits/budgets/{period}"
_HOOK = {"name": "w", "url": "https://w.example/", "tenant": "beta", "is_enabled": False}
"""Off, so that nobody is called."""
_PLAN = {"plan": {"default_priority": 7}}
_REMOTE = "/v1/remote"
_VERDICT = {"verdict": "complete", "lease": "LEASE"}

CALLS: dict[tuple[str, str], Call] = {
    ("GET", "/v1/me"): Call("me:read"),
    ("POST", "/v1/logout"): Call("me:read", {}),
    ("GET", "/v1/overview"): Call("queues:read"),
    ("GET", "/v1/queues"): Call("queues:read"),
    ("GET", "/v1/queues/{queue}"): Call("queues:read"),
    ("GET", "/v1/queues/{queue}/minutes"): Call("queues:read"),
    ("POST", "/v1/queues/{queue}/pause"): Call("queues:write", {}, whole=True),
    ("POST", "/v1/queues/{queue}/resume"): Call("queues:write", {}, whole=True),
    ("POST", "/v1/queues/{queue}/drain"): Call("queues:write", {}, whole=True),
    ("POST", "/v1/queues/{queue}/clean"): Call("queues:write", {"state": "failed"}, whole=True),
    ("POST", "/v1/queues/{queue}/obliterate"): Call("queues:write", {}, whole=True),
    ("POST", "/v1/queues/{queue}/retry-all"): Call("queues:write", {}, whole=True),
    ("POST", "/v1/queues/{queue}/promote-all"): Call("queues:write", {}, whole=True),
    ("GET", "/v1/queues/{queue}/limits"): Call("queues:read", whole=True),
    ("PUT", "/v1/queues/{queue}/limits"): Call("limits:write", {"concurrency": 3}, whole=True),
    ("DELETE", "/v1/queues/{queue}/limits"): Call("limits:write", whole=True),
    ("GET", "/v1/queues/{queue}/groups"): Call("queues:read"),
    ("GET", "/v1/queues/{queue}/groups/{group}"): Call("queues:read"),
    ("PUT", "/v1/queues/{queue}/groups/{group}"): Call("limits:write", {"weight": 9}, whole=True),
    ("POST", "/v1/queues/{queue}/groups/{group}/pause"): Call("limits:write", whole=True),
    ("POST", "/v1/queues/{queue}/groups/{group}/resume"): Call("limits:write", whole=True),
    ("DELETE", "/v1/queues/{queue}/groups/{group}"): Call("limits:write", whole=True),
    ("GET", "/v1/jobs"): Call("jobs:read"),
    ("GET", _PATH): Call("jobs:read"),
    ("POST", "/v1/queues/{queue}/jobs"): Call("jobs:add", _THEIRS),
    ("POST", "/v1/queues/{queue}/jobs/bulk"): Call("jobs:add", {"jobs": [_JOB, _THEIRS]}),
    ("POST", "/v1/flows"): Call("jobs:add", {**_JOB, "queue": "mail", "children": [{**_THEIRS, "queue": "mail"}]}),
    ("GET", f"{_PATH}/logs"): Call("jobs:read"),
    ("GET", f"{_PATH}/steps"): Call("jobs:read"),
    ("GET", f"{_PATH}/children"): Call("jobs:read"),
    ("GET", f"{_PATH}/flow"): Call("jobs:read"),
    ("POST", f"{_PATH}/retry"): Call("jobs:retry", {}),
    ("POST", f"{_PATH}/promote"): Call("jobs:write", {}),
    ("POST", f"{_PATH}/cancel"): Call("jobs:cancel", {}),
    ("POST", f"{_PATH}/signal"): Call("jobs:signal", {"name": "go"}),
    ("PATCH", _PATH): Call("jobs:write", {"data": {}}),
    ("DELETE", _PATH): Call("jobs:write"),
    ("POST", "/v1/jobs/actions"): Call("jobs:cancel", {"action": "cancel", "jobs": _ONE}),
    ("GET", "/v1/failures"): Call("jobs:read"),
    ("GET", "/v1/dead-letters"): Call("jobs:read"),
    ("POST", "/v1/dead-letters/retry"): Call("jobs:retry", {"filter": {}}),
    ("POST", "/v1/dead-letters/purge"): Call("jobs:write", {"jobs": _ONE}),
    ("GET", "/v1/schedules"): Call("schedules:read"),
    ("GET", _SCHEDULE): Call("schedules:read"),
    ("PUT", _SCHEDULE): Call("schedules:write", {"name": "tick", "every": 3600}),
    ("POST", f"{_SCHEDULE}/pause"): Call("schedules:write", {}),
    ("POST", f"{_SCHEDULE}/resume"): Call("schedules:write", {}),
    ("POST", f"{_SCHEDULE}/run"): Call("schedules:write", {}),
    ("DELETE", _SCHEDULE): Call("schedules:write"),
    ("GET", "/v1/workers"): Call("workers:read", whole=True),
    ("GET", "/v1/providers"): Call("providers:read", whole=True),
    ("GET", "/v1/sandboxes"): Call("sandboxes:read", whole=True),
    ("POST", "/v1/sandboxes/restart"): Call("sandboxes:write", {}, whole=True),
    ("GET", "/v1/outbox"): Call("outbox:read", whole=True),
    ("POST", "/v1/outbox/{number}/resend"): Call("outbox:write", {}, whole=True),
    ("DELETE", "/v1/outbox/{number}"): Call("outbox:write", whole=True),
    ("GET", "/v1/events"): Call("events:read", streams=True),
    ("WS", "/v1/events/ws"): Call("events:read", streams=True),
    ("GET", "/v1/events/poll"): Call("events:read", query={"wait_s": "0"}),
    ("GET", "/v1/live"): Call("queues:read", streams=True),
    ("POST", "/v1/tasks"): Call("tasks:add", {"prompt": "go", "tenant": "beta"}),
    ("GET", _TASK): Call("runs:read"),
    ("GET", f"{_TASK}/steps"): Call("runs:read"),
    ("GET", f"{_TASK}/messages"): Call("runs:read"),
    ("GET", f"{_TASK}/result"): Call("runs:read"),
    ("POST", f"{_TASK}/answer"): Call("tasks:answer", {"again": True}),
    ("POST", f"{_TASK}/fork"): Call("tasks:add", {"at": 0}),
    ("GET", "/v1/runs"): Call("runs:read"),
    ("GET", _RUN): Call("runs:read"),
    ("GET", f"{_RUN}/compare"): Call("runs:read", query={"with": "run_0"}),
    ("GET", f"{_RUN}/events"): Call("runs:read"),
    ("GET", f"{_RUN}/stream"): Call("runs:read", streams=True),
    ("WS", f"{_RUN}/ws"): Call("runs:read", streams=True),
    ("POST", f"{_RUN}/cancel"): Call("runs:cancel", {}),
    ("GET", f"{_RUN}/artifacts"): Call("runs:read"),
    ("GET", f"{_RUN}/inputs"): Call("runs:read"),
    ("POST", "/v1/files"): Call("tasks:add", {"of": "beta"}, {"name": "a.json", "tenant": "beta"}),
    ("GET", "/v1/files"): Call("runs:read"),
    ("GET", "/v1/files/{file_id}"): Call("runs:read"),
    ("DELETE", "/v1/files/{file_id}"): Call("tasks:add"),
    ("GET", "/v1/files/{file_id}/content"): Call("runs:read"),
    ("GET", "/v1/credits"): Call("credits:read"),
    ("GET", "/v1/credits/statement"): Call("credits:read"),
    ("GET", "/v1/credits/budgets"): Call("credits:read"),
    ("PUT", _BUDGET): Call("credits:write", {"tenant": "gamma", "credits": 1}, whole=True),
    ("DELETE", _BUDGET): Call("credits:write", query={"tenant": "beta"}, whole=True),
    ("POST", "/v1/credits/deposits"): Call("credits:write", {"tenant": "gamma", "credits": 1}, whole=True),
    ("GET", "/v1/tenants"): Call("tenants:read", whole=True),
    ("POST", "/v1/tenants"): Call("tenants:write", {"id": "gamma"}, whole=True),
    ("GET", "/v1/tenants/{tenant_id}"): Call("tenants:read", whole=True),
    ("PUT", "/v1/tenants/{tenant_id}"): Call("tenants:write", _PLAN, whole=True),
    ("DELETE", "/v1/tenants/{tenant_id}"): Call("tenants:write", whole=True),
    ("GET", "/v1/keys"): Call("keys:read"),
    ("POST", "/v1/keys"): Call("keys:write", {"name": "k", "role": "producer", "tenant": "beta"}),
    ("DELETE", "/v1/keys/{key_id}"): Call("keys:write"),
    ("GET", "/v1/users"): Call("users:read"),
    ("POST", "/v1/users"): Call(
        "users:write", {"name": "u", "password": "12345678", "role": "admin", "tenant": "beta"}
    ),
    ("PATCH", "/v1/users/{user_id}"): Call("users:write", {"role": "producer", "is_disabled": True}),
    ("POST", "/v1/users/{user_id}/password"): Call("users:write", {"password": "12345678"}),
    ("POST", "/v1/users/{user_id}/disable"): Call("users:write", {}),
    ("GET", "/v1/audit"): Call("audit:read"),
    ("GET", "/v1/views"): Call("views:write"),
    ("GET", "/v1/views/{name}"): Call("views:write"),
    ("PUT", "/v1/views/{name}"): Call("views:write", {"page": "jobs"}),
    ("DELETE", "/v1/views/{name}"): Call("views:write"),
    ("GET", "/v1/alerts"): Call("alerts:read"),
    ("PUT", "/v1/alerts"): Call("alerts:write", {"id": "ID", "name": "a", "condition": {"failed": 1}, "channel": {}}),
    ("DELETE", "/v1/alerts/{alert_id}"): Call("alerts:write"),
    ("GET", "/v1/webhooks"): Call("webhooks:read"),
    ("POST", "/v1/webhooks"): Call("webhooks:write", _HOOK),
    ("GET", _WEBHOOK): Call("webhooks:read"),
    ("PATCH", _WEBHOOK): Call("webhooks:write", {"name": "mine now"}),
    ("DELETE", _WEBHOOK): Call("webhooks:write"),
    ("POST", f"{_WEBHOOK}/secret"): Call("webhooks:write", {}),
    ("POST", f"{_WEBHOOK}/test"): Call("webhooks:write", {}),
    ("GET", f"{_WEBHOOK}/deliveries"): Call("webhooks:read"),
    ("POST", f"{_REMOTE}/claim"): Call("remote:work", {"worker": "w", "queues": {"QUEUE": 9}, "request": "one"}),
    ("POST", f"{_REMOTE}/wait"): Call("remote:work", {"queues": ["QUEUE"], "wait_s": 0}),
    ("POST", f"{_REMOTE}/heartbeat"): Call("remote:work", {"leases": ["LEASE"]}),
    ("POST", f"{_REMOTE}/notices"): Call("remote:work", {"worker": "w", "wait_s": 0}),
    ("POST", f"{_REMOTE}/progress"): Call("remote:work", {"lease": "LEASE", "value": 1}),
    ("POST", f"{_REMOTE}/log"): Call("remote:work", {"lease": "LEASE", "lines": ["mine"], "request": "one"}),
    ("POST", f"{_REMOTE}/step"): Call("remote:work", {"lease": "LEASE"}),
    ("POST", f"{_REMOTE}/settle"): Call("remote:work", {"settlements": [_VERDICT], "request": "one"}),
    ("GET", "/health"): Call("metrics:read", whole=True),
    ("GET", "/v1/health"): Call("metrics:read", whole=True),
    ("GET", "/metrics"): Call("metrics:read", whole=True),
    ("GET", "/v1/metrics"): Call("metrics:read", whole=True),
}


def all_routes(app: FastAPI) -> set[tuple[str, str]]:
    """Every route of the application, by method and path; `WS` for a WebSocket."""
    found = set()
    for route in app.routes:
        if isinstance(route, APIWebSocketRoute):
            found.add(("WS", route.path))
        elif isinstance(route, APIRoute):
            found |= {(method, route.path) for method in route.methods or ()}
        else:
            found.add(("GET", str(getattr(route, "path", route))))
    return found
