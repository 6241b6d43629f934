"""Credits: who has how many, what is held of them, and each move that was ever made. Amounts are micro-credits."""

from sqlalchemy import JSON, BigInteger, CheckConstraint, Column, ForeignKey, Index, String, Table

from bullpen.records.tables import metadata
from bullpen.records.tables.access import NUMBER

account = Table(
    "bullpen_credit_account",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("tenant", String(200), nullable=False, index=True),
    Column("available", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    # The database itself refuses what no code may do.
    CheckConstraint("available >= 0 AND held >= 0 AND spent >= 0", name="ck_bullpen_credit_account_not_negative"),
)

hold = Table(
    "bullpen_credit_hold",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("accounts", JSON, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("state", String(20), nullable=False),
    Column("charged", BigInteger, nullable=False),
    Column("run", String(200)),
    Column("at_ms", BigInteger, nullable=False),
    Column("settled_ms", BigInteger),
    Index("ix_bullpen_credit_hold_run_state", "run", "state"),
)

entry = Table(
    "bullpen_credit_entry",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("account", String(200), ForeignKey(account.c.id), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("key", String(200), nullable=False),
    Column("available", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("memo", String(200), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("ix_bullpen_credit_entry_account_number", "account", "number"),
    Index("uq_bullpen_credit_entry_key", "account", "kind", "key", unique=True),
)

budget = Table(
    "bullpen_credit_budget",
    metadata,
    Column("tenant", String(200), primary_key=True),
    Column("period", String(20), primary_key=True),
    Column("most", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    CheckConstraint("most >= 0", name="ck_bullpen_credit_budget_not_negative"),
)

window = Table(
    "bullpen_credit_window",
    metadata,
    Column("tenant", String(200), primary_key=True),
    Column("period", String(20), primary_key=True),
    Column("start_ms", BigInteger, primary_key=True),
    Column("until_ms", BigInteger),
    Column("held", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    CheckConstraint("held >= 0 AND spent >= 0", name="ck_bullpen_credit_window_not_negative"),
)
