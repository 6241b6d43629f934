"""Room for secrets of webhooks that are encrypted."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    with op.batch_alter_table("bullpen_webhook") as table:
        table.alter_column("secret", existing_type=sa.String(100), type_=sa.String(500), existing_nullable=False)
