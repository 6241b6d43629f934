"""Runs of agents, their tasks and what happened in them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "bullpen_run",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("told", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_run"),
    )
    op.create_index("ix_bullpen_run_tenant_created", "bullpen_run", ["tenant", "created_ms", "id"])
    op.create_index("ix_bullpen_run_created", "bullpen_run", ["created_ms", "id"])
    op.create_table(
        "bullpen_task",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("parent", sa.String(64)),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("question", sa.JSON(none_as_null=True)),
        sa.Column("outcome", sa.LargeBinary()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("finished_ms", sa.BigInteger()),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["bullpen_run.id"], name="fk_bullpen_task_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_task"),
    )
    op.create_index("ix_bullpen_task_run", "bullpen_task", ["run", "created_ms"])
    op.create_index("ix_bullpen_task_state_changed", "bullpen_task", ["state", "changed_ms"])
    op.create_index("ix_bullpen_task_queue_started", "bullpen_task", ["queue", "started_ms"])
    op.create_table(
        "bullpen_progress",
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["bullpen_run.id"], name="fk_bullpen_progress_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "number", name="pk_bullpen_progress"),
    )
