"""The idempotency keys under which runs were asked for, beside the runs."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "bullpen_run_key",
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "created_by", "key", name="pk_bullpen_run_key"),
        sa.ForeignKeyConstraint(["run"], ["bullpen_run.id"], name="fk_bullpen_run_key_run", ondelete="CASCADE"),
    )
    op.create_index("ix_bullpen_run_key_run", "bullpen_run_key", ["run"])
