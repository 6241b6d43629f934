"""Providers of models, and how each was found by whoever asked it last."""

from sqlalchemy import BigInteger, Column, LargeBinary, String, Table

from bullpen.records.tables import metadata

provider = Table(
    "bullpen_provider",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("health", LargeBinary, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)
"""`health` is as its room writes it; empty while nothing is known."""
