"""The workspace of a run, below its tenant; a list of one goes down an index."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("bullpen_run", sa.Column("workspace", sa.String(200)))
    op.create_index(
        "ix_bullpen_run_tenant_workspace_created", "bullpen_run", ["tenant", "workspace", "created_ms", "id"]
    )
