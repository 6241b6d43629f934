"""The pools of sandboxes of all workers, to be listed and restarted."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "bullpen_sandbox_pool",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("worker", sa.String(200), nullable=False),
        sa.Column("standing", sa.LargeBinary(), nullable=False),
        sa.Column("told_ms", sa.BigInteger(), nullable=False),
        sa.Column("restart_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_sandbox_pool"),
    )
