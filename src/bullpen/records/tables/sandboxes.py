"""Pools of sandboxes, as the workers that have them told of them last."""

from sqlalchemy import BigInteger, Column, LargeBinary, String, Table

from bullpen.records.tables import metadata

sandbox_pool = Table(
    "bullpen_sandbox_pool",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("worker", String(200), nullable=False),
    Column("standing", LargeBinary, nullable=False),
    Column("told_ms", BigInteger, nullable=False),
    Column("restart_ms", BigInteger),
)
"""`standing` is as its room writes it. `restart_ms` is when somebody asked for a restart that was not done yet."""
