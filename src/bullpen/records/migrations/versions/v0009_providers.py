"""How providers of models are doing, for all workers."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "bullpen_provider",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("health", sa.LargeBinary(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_bullpen_provider"),
    )
