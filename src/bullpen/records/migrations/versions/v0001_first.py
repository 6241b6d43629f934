"""The first tables: access, the outbox, the read model."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_access()
    _create_outbox()
    _create_model()
    _create_text()


def _create_access() -> None:
    op.create_table(
        "bullpen_api_key",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("prefix", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("tenant", sa.String(200)),
        sa.Column("queues", sa.JSON(none_as_null=True)),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.Column("revoked_ms", sa.BigInteger()),
        sa.Column("last_used_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_api_key"),
        sa.UniqueConstraint("prefix", name="uq_bullpen_api_key_prefix"),
    )
    op.create_table(
        "bullpen_user",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("password", sa.String(200), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("tenant", sa.String(200)),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_user"),
        sa.UniqueConstraint("name", name="uq_bullpen_user_name"),
    )
    op.create_table(
        "bullpen_session",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("csrf", sa.String(64), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["bullpen_user.id"], name="fk_bullpen_session_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name="pk_bullpen_session"),
    )
    op.create_index("ix_bullpen_session_expires_ms", "bullpen_session", ["expires_ms"])
    op.create_index("ix_bullpen_session_user_id", "bullpen_session", ["user_id"])
    op.create_table(
        "bullpen_tenant",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_tenant"),
    )
    op.create_table(
        "bullpen_audit",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("action", sa.String(100), nullable=False),
        sa.Column("target", sa.String(600), nullable=False),
        sa.Column("tenant", sa.String(200)),
        sa.Column("outcome", sa.String(100), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_bullpen_audit"),
    )
    op.create_index("ix_bullpen_audit_at_ms", "bullpen_audit", ["at_ms"])
    op.create_index("ix_bullpen_audit_target", "bullpen_audit", ["target"])
    op.create_index("ix_bullpen_audit_tenant_number", "bullpen_audit", ["tenant", "number"])
    op.create_table(
        "bullpen_view",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200)),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("page", sa.String(100), nullable=False),
        sa.Column("query", sa.JSON(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_view"),
    )
    op.create_index("ix_bullpen_view_owner", "bullpen_view", ["owner"])
    op.create_table(
        "bullpen_alert",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200)),
        sa.Column("condition", sa.JSON(), nullable=False),
        sa.Column("channel", sa.JSON(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_alert"),
    )
    op.create_table(
        "bullpen_idempotency",
        sa.Column("scope", sa.String(200), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("body", sa.LargeBinary()),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "key", name="pk_bullpen_idempotency"),
    )
    op.create_index("ix_bullpen_idempotency_expires_ms", "bullpen_idempotency", ["expires_ms"])
    op.create_table(
        "bullpen_lease",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_bullpen_lease"),
    )


def _create_outbox() -> None:
    op.create_table(
        "bullpen_outbox",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("job_id", sa.String(300), nullable=False),
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("job", sa.LargeBinary(), nullable=False),
        sa.Column("written_ms", sa.BigInteger(), nullable=False),
        sa.Column("tried_ms", sa.BigInteger()),
        sa.Column("holder", sa.String(64)),
        sa.Column("held_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_index("ix_bullpen_outbox_held_until_ms", "bullpen_outbox", ["held_until_ms", "number"])


def _create_model() -> None:
    op.create_table(
        "bullpen_stream",
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("cursor", sa.String(100), nullable=False),
        sa.Column("is_scanning", sa.Boolean(), nullable=False),
        sa.Column("scan", sa.Integer(), nullable=False),
        sa.Column("event_ms", sa.BigInteger()),
        sa.Column("caught_up_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("queue", name="pk_bullpen_stream"),
    )
    op.create_table(
        "bullpen_job",
        sa.Column("key", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("id", sa.String(300), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200)),
        sa.Column("workspace", sa.String(200)),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("attempts_made", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("error_kind", sa.String(20)),
        sa.Column("error_type", sa.String(300)),
        sa.Column("fingerprint", sa.String(12)),
        sa.Column("added_ms", sa.BigInteger(), nullable=False),
        sa.Column("ready_ms", sa.BigInteger()),
        sa.Column("run_at_ms", sa.BigInteger()),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("finished_ms", sa.BigInteger()),
        sa.Column("scan", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_bullpen_job"),
    )
    op.create_index("ix_bullpen_job_added", "bullpen_job", ["added_ms", "key"])
    op.create_index(
        "ix_bullpen_job_failed",
        "bullpen_job",
        ["fingerprint", "finished_ms", "key"],
        sqlite_where=sa.text("state = 'failed'"),
        postgresql_where=sa.text("state = 'failed'"),
    )
    op.create_index("ix_bullpen_job_state_added", "bullpen_job", ["queue", "state", "added_ms", "key"])
    op.create_index("ix_bullpen_job_state_finished", "bullpen_job", ["queue", "state", "finished_ms", "key"])
    op.create_index(
        "ix_bullpen_job_tenant_added",
        "bullpen_job",
        ["tenant", "added_ms", "key"],
        sqlite_where=sa.text("tenant IS NOT NULL"),
        postgresql_where=sa.text("tenant IS NOT NULL"),
    )
    op.create_index("uq_bullpen_job_queue_id", "bullpen_job", ["queue", "id"], unique=True)
    op.create_table(
        "bullpen_job_tag",
        sa.Column("tag", sa.String(200), nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tag", "key", name="pk_bullpen_job_tag"),
    )
    op.create_index("ix_bullpen_job_tag_key", "bullpen_job_tag", ["key"])
    op.create_table(
        "bullpen_tally",
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "state", "tenant", name="pk_bullpen_tally"),
    )
    op.create_table(
        "bullpen_minute",
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("minute_ms", sa.BigInteger(), nullable=False),
        sa.Column("added", sa.Integer(), nullable=False),
        sa.Column("started", sa.Integer(), nullable=False),
        sa.Column("completed", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("retried", sa.Integer(), nullable=False),
        sa.Column("wait", sa.JSON(), nullable=False),
        sa.Column("processing", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "tenant", "minute_ms", name="pk_bullpen_minute"),
    )
    op.create_index("ix_bullpen_minute_minute_ms", "bullpen_minute", ["minute_ms"])


def _create_text() -> None:
    """The words of each job, by its key; each database searches in its own way."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE bullpen_job_text (key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)")
        op.execute("CREATE INDEX ix_bullpen_job_text_words ON bullpen_job_text USING gin (words)")
    else:
        op.execute("CREATE VIRTUAL TABLE bullpen_job_text USING fts5 (words, tokenize = 'unicode61', detail = 'none')")
