"""Files of runs: what was given to them, what they made, and the workspace as it was last saved."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

from bullpen.records.tables import metadata
from bullpen.records.tables.runs import run, task

file = Table(
    "bullpen_file",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("tenant", String(200), nullable=False),
    Column("run", String(64), ForeignKey(run.c.id, ondelete="CASCADE")),
    Column("task", String(64)),
    Column("key", String(200)),
    Column("kind", String(20), nullable=False),
    Column("type", String(20), nullable=False),
    Column("name", String(255), nullable=False),
    Column("mime", String(200), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    UniqueConstraint("task", "key", "name", name="uq_bullpen_file_task"),
    Index("ix_bullpen_file_run", "run", "created_ms", "id"),
    Index("ix_bullpen_file_tenant", "tenant", "created_ms", "id"),
    Index("ix_bullpen_file_sha256", "sha256"),
    Index("ix_bullpen_file_expires", "expires_ms"),
)
"""An input that no run was given yet has none. `key` is that of the call that made an artifact."""

checkpoint = Table(
    "bullpen_checkpoint",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("task", String(64), ForeignKey(task.c.id, ondelete="CASCADE"), nullable=False),
    Column("place", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("number", Integer, nullable=False, server_default="1"),
    UniqueConstraint("task", "number", name="uq_bullpen_checkpoint_task"),
    Index("ix_bullpen_checkpoint_sha256", "sha256"),
    Index("ix_bullpen_checkpoint_expires", "expires_ms"),
)
"""`number` is that of the task's: calls that were made side by side are not saved in the order of their places."""

part = Table(
    "bullpen_checkpoint_part",
    metadata,
    Column("checkpoint", String(64), ForeignKey(checkpoint.c.id, ondelete="CASCADE"), nullable=False),
    Column("sha256", String(64), nullable=False),
    PrimaryKeyConstraint("checkpoint", "sha256"),
    Index("ix_bullpen_checkpoint_part_sha256", "sha256"),
)
"""Blobs that a checkpoint needs beside its own, but for those that an older one of its task names."""
