"""Budgets of tenants: what each may spend in a period, and what is used of it."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "bullpen_credit_budget",
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("period", sa.String(20), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("most >= 0", name="ck_bullpen_credit_budget_not_negative"),
        sa.PrimaryKeyConstraint("tenant", "period", name="pk_bullpen_credit_budget"),
    )
    op.create_table(
        "bullpen_credit_window",
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("period", sa.String(20), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger()),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("held >= 0 AND spent >= 0", name="ck_bullpen_credit_window_not_negative"),
        sa.PrimaryKeyConstraint("tenant", "period", "start_ms", name="pk_bullpen_credit_window"),
    )
