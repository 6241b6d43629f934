"""API keys by index in the order in which they are listed; what names are hashed with."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_index("ix_bullpen_api_key_created", "bullpen_api_key", ["created_ms", "id"])
    op.create_index("ix_bullpen_api_key_tenant_created", "bullpen_api_key", ["tenant", "created_ms", "id"])
    op.create_table(
        "bullpen_salt",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_bullpen_salt"),
    )
