"""Credits: accounts, holds, and the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "bullpen_credit_account",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("available", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "available >= 0 AND held >= 0 AND spent >= 0", name="ck_bullpen_credit_account_not_negative"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_credit_account"),
    )
    op.create_index("ix_bullpen_credit_account_tenant", "bullpen_credit_account", ["tenant"])
    op.create_table(
        "bullpen_credit_hold",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("accounts", sa.JSON(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("charged", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.String(200)),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("settled_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_credit_hold"),
    )
    op.create_index("ix_bullpen_credit_hold_run_state", "bullpen_credit_hold", ["run", "state"])
    op.create_table(
        "bullpen_credit_entry",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("account", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("available", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("memo", sa.String(200), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["bullpen_credit_account.id"], name="fk_bullpen_credit_entry_account"),
        sa.PrimaryKeyConstraint("number", name="pk_bullpen_credit_entry"),
    )
    op.create_index("ix_bullpen_credit_entry_account_number", "bullpen_credit_entry", ["account", "number"])
    op.create_index("uq_bullpen_credit_entry_key", "bullpen_credit_entry", ["account", "kind", "key"], unique=True)
