"""Who may come in, what they may do, and what they did."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

from bullpen.records.tables import metadata

NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts by itself in a column of this very type only."""

api_key = Table(
    "bullpen_api_key",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("prefix", String(32), nullable=False, unique=True),
    Column("digest", String(64), nullable=False),
    Column("name", String(200), nullable=False),
    Column("role", String(20), nullable=False),
    Column("tenant", String(200)),
    Column("queues", JSON(none_as_null=True)),
    Column("created_by", String(200), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    Column("last_used_ms", BigInteger),
    Index("ix_bullpen_api_key_created", "created_ms", "id"),
    Index("ix_bullpen_api_key_tenant_created", "tenant", "created_ms", "id"),
)

user = Table(
    "bullpen_user",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("password", String(200), nullable=False),
    Column("role", String(20), nullable=False),
    Column("tenant", String(200)),
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),
)

session = Table(
    "bullpen_session",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("user_id", String(32), ForeignKey(user.c.id, ondelete="CASCADE"), nullable=False, index=True),
    Column("csrf", String(64), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False, index=True),
)

tenant = Table(
    "bullpen_tenant",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("plan", JSON, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),
)

audit = Table(
    "bullpen_audit",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("action", String(100), nullable=False),
    Column("target", String(600), nullable=False),
    Column("tenant", String(200)),
    Column("outcome", String(100), nullable=False),
    Column("details", JSON, nullable=False),
    Index("ix_bullpen_audit_tenant_number", "tenant", "number"),
    Index("ix_bullpen_audit_target", "target"),
    Index("ix_bullpen_audit_at_ms", "at_ms"),
    Index("ix_bullpen_audit_actor_number", "actor", "number"),
    Index("ix_bullpen_audit_action_number", "action", "number"),
)

view = Table(
    "bullpen_view",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", String(200), nullable=False, index=True),
    Column("tenant", String(200)),
    Column("name", String(200), nullable=False),
    Column("page", String(100), nullable=False),
    Column("query", JSON, nullable=False),
    Column("is_shared", Boolean, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

alert = Table(
    "bullpen_alert",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("tenant", String(200)),
    Column("condition", JSON, nullable=False),
    Column("channel", JSON, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

idempotency = Table(
    "bullpen_idempotency",
    metadata,
    Column("scope", String(200), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("status", Integer),
    Column("body", LargeBinary),
    Column("content_type", Text, nullable=False),
    Column("expires_ms", BigInteger, nullable=False, index=True),
)

salt = Table(
    "bullpen_salt",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

lease = Table(
    "bullpen_lease",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)
