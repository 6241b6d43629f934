"""The read model: what lists, search and charts need to know of the jobs that the queue's store has."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)

from bullpen.records.tables import metadata

stream = Table(
    "bullpen_stream",
    metadata,
    Column("queue", String(200), primary_key=True),
    Column("cursor", String(100), nullable=False),
    Column("is_scanning", Boolean, nullable=False),
    Column("scan", Integer, nullable=False),
    Column("event_ms", BigInteger),
    Column("caught_up_ms", BigInteger),
)
"""How far each queue's events were read, and since when nothing is known to be missing."""

job = Table(
    "bullpen_job",
    metadata,
    Column("key", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("queue", String(200), nullable=False),
    Column("id", String(300), nullable=False),
    Column("state", String(20), nullable=False),
    Column("name", String(200), nullable=False),
    Column("tenant", String(200)),
    Column("workspace", String(200)),
    Column("tags", JSON, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("attempts_made", Integer, nullable=False),
    Column("error", Text),
    Column("error_kind", String(20)),
    Column("error_type", String(300)),
    Column("fingerprint", String(12)),
    Column("added_ms", BigInteger, nullable=False),
    Column("ready_ms", BigInteger),
    Column("run_at_ms", BigInteger),
    Column("started_ms", BigInteger),
    Column("finished_ms", BigInteger),
    Column("scan", Integer, nullable=False),
    Index("uq_bullpen_job_queue_id", "queue", "id", unique=True),
    Index("ix_bullpen_job_added", "added_ms", "key"),
    Index("ix_bullpen_job_queue_added", "queue", "added_ms", "key"),
    # Of what is no column, so that SQLite uses it for lists alone: the reasons of failures have a better one.
    Index("ix_bullpen_job_any_state_added", text("(state || '')"), "added_ms", "key"),
    Index("ix_bullpen_job_state_added", "queue", "state", "added_ms", "key"),
    Index("ix_bullpen_job_state_finished", "queue", "state", "finished_ms", "key"),
    Index(
        "ix_bullpen_job_tenant_added",
        "tenant",
        "added_ms",
        "key",
        sqlite_where=text("tenant IS NOT NULL"),
        postgresql_where=text("tenant IS NOT NULL"),
    ),
    Index(
        "ix_bullpen_job_tenant_queue_added",
        "tenant",
        "queue",
        "added_ms",
        "key",
        sqlite_where=text("tenant IS NOT NULL"),
        postgresql_where=text("tenant IS NOT NULL"),
    ),
    Index(
        "ix_bullpen_job_tenant_state_added",
        "tenant",
        "state",
        "added_ms",
        "key",
        sqlite_where=text("tenant IS NOT NULL"),
        postgresql_where=text("tenant IS NOT NULL"),
    ),
    Index(
        "ix_bullpen_job_failed_why",
        "queue",
        "name",
        "fingerprint",
        "finished_ms",
        "key",
        sqlite_where=text("state = 'failed'"),
        postgresql_where=text("state = 'failed'"),
    ),
    Index(
        "ix_bullpen_job_failed_why_of_tenant",
        "tenant",
        "queue",
        "name",
        "fingerprint",
        "finished_ms",
        "key",
        sqlite_where=text("state = 'failed'"),
        postgresql_where=text("state = 'failed'"),
    ),
    Index("ix_bullpen_job_name_added", "name", "added_ms", "key"),
    Index(
        "ix_bullpen_job_workspace_added",
        "workspace",
        "added_ms",
        "key",
        sqlite_where=text("workspace IS NOT NULL"),
        postgresql_where=text("workspace IS NOT NULL"),
    ),
    Index(
        "ix_bullpen_job_fingerprint_added",
        "fingerprint",
        "added_ms",
        "key",
        sqlite_where=text("fingerprint IS NOT NULL"),
        postgresql_where=text("fingerprint IS NOT NULL"),
    ),
)

job_tag = Table(
    "bullpen_job_tag",
    metadata,
    Column("tag", String(200), nullable=False),
    Column("key", BigInteger, nullable=False),
    PrimaryKeyConstraint("tag", "key"),
    Index("ix_bullpen_job_tag_key", "key"),
)

tally = Table(
    "bullpen_tally",
    metadata,
    Column("queue", String(200), nullable=False),
    Column("state", String(20), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("jobs", BigInteger, nullable=False),
    PrimaryKeyConstraint("queue", "state", "tenant"),
)
"""How many rows `job` has of each kind, kept with each change: counting a million of them takes too long."""

reason = Table(
    "bullpen_reason",
    metadata,
    Column("queue", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    Column("fingerprint", String(12), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("jobs", BigInteger, nullable=False),
    PrimaryKeyConstraint("queue", "name", "fingerprint", "tenant"),
)
"""How many rows of failed jobs have each reason, in the same way; a reason that none has any more has no row."""

minute = Table(
    "bullpen_minute",
    metadata,
    Column("queue", String(200), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("minute_ms", BigInteger, nullable=False),
    Column("added", Integer, nullable=False),
    Column("started", Integer, nullable=False),
    Column("completed", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("retried", Integer, nullable=False),
    Column("wait", JSON, nullable=False),
    Column("processing", JSON, nullable=False),
    PrimaryKeyConstraint("queue", "tenant", "minute_ms"),
    Index("ix_bullpen_minute_minute_ms", "minute_ms"),
)
"""What happened in each minute; without a tenant it stands under the empty one."""
