"""Webhooks: subscriptions, how far events were read for them, what alerts have counted."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "bullpen_webhook",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200)),
        sa.Column("url", sa.String(2_000), nullable=False),
        sa.Column("queues", sa.JSON(none_as_null=True)),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("with_result", sa.Boolean(), nullable=False),
        sa.Column("secret", sa.String(100), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_webhook"),
    )
    op.create_index("ix_bullpen_webhook_tenant", "bullpen_webhook", ["tenant"])
    op.create_table(
        "bullpen_webhook_stream",
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("cursor", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("queue", name="pk_bullpen_webhook_stream"),
    )
    op.create_table(
        "bullpen_alert_window",
        sa.Column("alert_id", sa.String(32), nullable=False),
        sa.Column("window_ms", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", "window_ms", name="pk_bullpen_alert_window"),
    )
