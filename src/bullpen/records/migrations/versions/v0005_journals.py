"""Journals of runs whose state of record is SQL."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "bullpen_journal",
        sa.Column("run", sa.String(200), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("run", name="pk_bullpen_journal"),
    )
    op.create_table(
        "bullpen_journal_entry",
        sa.Column("run", sa.String(200), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("is_done", sa.Boolean(), nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.Column("value", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["run"], ["bullpen_journal.run"], name="fk_bullpen_journal_entry_run", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run", "place", name="pk_bullpen_journal_entry"),
    )
    op.create_table(
        "bullpen_journal_signal",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("run", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run"], ["bullpen_journal.run"], name="fk_bullpen_journal_signal_run", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_bullpen_journal_signal"),
    )
    op.create_index("ix_bullpen_journal_signal_run_number", "bullpen_journal_signal", ["run", "number"])
