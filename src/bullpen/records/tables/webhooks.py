"""Who is told of queue events over HTTP, how far these were read, and what alerts have counted."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, Integer, PrimaryKeyConstraint, String, Table

from bullpen.records.tables import metadata

webhook = Table(
    "bullpen_webhook",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("tenant", String(200), index=True),
    Column("url", String(2_000), nullable=False),
    Column("queues", JSON(none_as_null=True)),
    Column("kinds", JSON, nullable=False),
    Column("with_result", Boolean, nullable=False),
    Column("secret", String(500), nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

webhook_stream = Table(
    "bullpen_webhook_stream",
    metadata,
    Column("queue", String(200), primary_key=True),
    Column("cursor", String(100), nullable=False),
)
"""Up to where each queue's events have become deliveries."""

alert_window = Table(
    "bullpen_alert_window",
    metadata,
    Column("alert_id", String(32), nullable=False),
    Column("window_ms", BigInteger, nullable=False),
    Column("failed", Integer, nullable=False),
    PrimaryKeyConstraint("alert_id", "window_ms"),
)
"""How many jobs failed for good in each stretch of time that an alert looks at."""
