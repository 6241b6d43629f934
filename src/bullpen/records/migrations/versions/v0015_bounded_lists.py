"""More lists by index: the audit log by who and what, a tenant's jobs of a queue, runs by their state and end."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_INDEXES = (
    ("bullpen_audit", "actor_number", ["actor", "number"]),
    ("bullpen_audit", "action_number", ["action", "number"]),
    ("bullpen_run", "state_created", ["state", "created_ms", "id"]),
    ("bullpen_run", "tenant_state_created", ["tenant", "state", "created_ms", "id"]),
    ("bullpen_run", "finished", ["finished_ms", "id"]),
)


def upgrade() -> None:
    for table, name, columns in _INDEXES:
        op.create_index(f"ix_{table}_{name}", table, columns)
    has_tenant = sa.text("tenant IS NOT NULL")
    op.create_index(
        "ix_bullpen_job_tenant_queue_added",
        "bullpen_job",
        ["tenant", "queue", "added_ms", "key"],
        sqlite_where=has_tenant,
        postgresql_where=has_tenant,
    )
