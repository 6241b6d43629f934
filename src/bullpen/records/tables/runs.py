"""Runs of agents: what was asked for, the tasks it is made of, and what happened, in order."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

from bullpen.records.tables import metadata

run = Table(
    "bullpen_run",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("tenant", String(200), nullable=False),
    Column("workspace", String(200)),
    Column("created_by", String(200), nullable=False),
    Column("state", String(20), nullable=False),
    Column("told", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("finished_ms", BigInteger),
    Column("number", BigInteger),
    Index("uq_bullpen_run_number", "number", unique=True),
    Index("ix_bullpen_run_tenant_created", "tenant", "created_ms", "id"),
    Index("ix_bullpen_run_tenant_workspace_created", "tenant", "workspace", "created_ms", "id"),
    Index("ix_bullpen_run_created", "created_ms", "id"),
    Index("ix_bullpen_run_state_created", "state", "created_ms", "id"),
    Index("ix_bullpen_run_tenant_state_created", "tenant", "state", "created_ms", "id"),
    Index("ix_bullpen_run_finished", "finished_ms", "id"),
)
"""`told` is the number of its last event. Its state is that of its first task.

Numbers grow as runs come, and their words are kept by them. None has a run that a process of before version 21 made.
"""

task = Table(
    "bullpen_task",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("run", String(64), ForeignKey(run.c.id, ondelete="CASCADE"), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("parent", String(64)),
    Column("kind", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("queue", String(200), nullable=False),
    Column("prompt", Text, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    Column("question", JSON(none_as_null=True)),
    Column("outcome", LargeBinary),
    Column("created_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger),
    Column("finished_ms", BigInteger),
    Column("changed_ms", BigInteger, nullable=False),
    Index("ix_bullpen_task_run", "run", "created_ms"),
    Index("ix_bullpen_task_state_changed", "state", "changed_ms"),
    Index("ix_bullpen_task_queue_started", "queue", "started_ms"),
)
"""A job of a queue has the id of its task."""

run_key = Table(
    "bullpen_run_key",
    metadata,
    Column("tenant", String(200), primary_key=True),
    Column("created_by", String(200), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("run", String(64), ForeignKey(run.c.id, ondelete="CASCADE"), nullable=False, index=True),
)
"""Under which key a run was asked for, by whom."""

progress = Table(
    "bullpen_progress",
    metadata,
    Column("run", String(64), ForeignKey(run.c.id, ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("task", String(64), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("run", "number"),
)
