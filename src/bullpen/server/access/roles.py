"""What each role may do: one word for each kind of call, and a set of words for each role."""

from bullpen.records.keys import Role

PERMISSIONS: dict[str, str] = {
    "me:read": "See who one is.",
    "queues:read": "See queues, their counts, rates, limits and groups.",
    "queues:write": "Pause, resume, drain, clean and remove queues; run all failed jobs again.",
    "limits:write": "Change the limits of queues and groups; pause groups.",
    "jobs:read": "See jobs, their data, logs, steps and failures.",
    "jobs:add": "Add jobs and flows.",
    "jobs:retry": "Run finished jobs again.",
    "jobs:cancel": "Cancel jobs.",
    "jobs:signal": "Send signals to jobs.",
    "jobs:write": "Promote, change and remove jobs.",
    "events:read": "Follow events.",
    "schedules:read": "See schedules.",
    "schedules:write": "Make, change, pause, run and remove schedules.",
    "workers:read": "See workers.",
    "providers:read": "See how providers of models are doing.",
    "sandboxes:read": "See the sandboxes of all workers.",
    "sandboxes:write": "Have the sandboxes of all workers replaced.",
    "outbox:read": "See rows of the outbox that nobody sends.",
    "outbox:write": "Send such rows again, or drop them.",
    "metrics:read": "See health and metrics.",
    "views:write": "Keep views of one's own.",
    "alerts:read": "See alerts.",
    "alerts:write": "Set alerts.",
    "webhooks:read": "See webhooks and their deliveries, never their secrets.",
    "webhooks:write": "Make, change, try and remove webhooks.",
    "tasks:add": "Ask something of agents.",
    "tasks:answer": "Say what became of a call that a task asks about.",
    "runs:read": "See runs of agents, their tasks, steps, events and results.",
    "runs:cancel": "Cancel runs.",
    "credits:read": "See credits, their statement and budgets.",
    "credits:write": "Put credits in; set budgets.",
    "audit:read": "See who did what.",
    "tenants:read": "See tenants and their plans.",
    "tenants:write": "Make, change and remove tenants.",
    "keys:read": "See API keys, never their text.",
    "keys:write": "Make and revoke API keys.",
    "users:read": "See users.",
    "users:write": "Make, change and disable users, set passwords.",
    "remote:work": "Work on jobs over HTTP.",
}
"""All words, and what each allows."""

OF_QUEUES = frozenset(
    {
        "me:read",
        "queues:read",
        "queues:write",
        "limits:write",
        "jobs:read",
        "jobs:add",
        "jobs:retry",
        "jobs:cancel",
        "jobs:signal",
        "jobs:write",
        "events:read",
        "schedules:read",
        "schedules:write",
        "views:write",
        "alerts:read",
        "alerts:write",
        "webhooks:read",
        "webhooks:write",
        "remote:work",
    }
)
"""What makes sense within some queues: who sees no others has none of the rest, whatever the role says."""

OF_ALL_TENANTS = frozenset(
    {
        "queues:write",
        "limits:write",
        "workers:read",
        "providers:read",
        "sandboxes:read",
        "sandboxes:write",
        "metrics:read",
        "outbox:read",
        "outbox:write",
        "credits:write",
        "tenants:read",
        "tenants:write",
    }
)
"""What every route refuses to a caller with a tenant, whatever the role says."""

_READS = frozenset(word for word in PERMISSIONS if word.endswith(":read"))
_ADMIN_ONLY = frozenset(
    {
        "tenants:read",
        "tenants:write",
        "keys:read",
        "keys:write",
        "users:read",
        "users:write",
        "remote:work",
        "credits:write",
        "sandboxes:read",
        "sandboxes:write",
    }
)

ROLES: dict[Role, frozenset[str]] = {
    Role.ADMIN: frozenset(PERMISSIONS),
    Role.OPERATOR: frozenset(PERMISSIONS) - _ADMIN_ONLY,
    Role.REVIEWER: (_READS - _ADMIN_ONLY - {"providers:read", "outbox:read"})
    | {"jobs:retry", "jobs:signal", "tasks:answer", "views:write"},
    Role.PRODUCER: frozenset(
        {
            "me:read",
            "jobs:read",
            "jobs:add",
            "jobs:cancel",
            "events:read",
            "tasks:add",
            "runs:read",
            "runs:cancel",
            "credits:read",
        }
    ),
    Role.WORKER: frozenset({"me:read", "remote:work"}),
}
