"""Journals of runs whose state of record is SQL."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Table

from bullpen.records.tables import metadata
from bullpen.records.tables.access import NUMBER

journal = Table(
    "bullpen_journal",
    metadata,
    Column("run", String(200), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
)

entry = Table(
    "bullpen_journal_entry",
    metadata,
    Column("run", String(200), ForeignKey(journal.c.run, ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("is_done", Boolean, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("value", LargeBinary),
)

signal = Table(
    "bullpen_journal_signal",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("run", String(200), ForeignKey(journal.c.run, ondelete="CASCADE"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Index("ix_bullpen_journal_signal_run_number", "run", "number"),
)
