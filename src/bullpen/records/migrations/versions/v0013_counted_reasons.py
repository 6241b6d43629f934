"""Reasons of failures are counted with each change, so that to tell them takes no longer where more jobs failed."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "bullpen_reason",
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("fingerprint", sa.String(12), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "name", "fingerprint", "tenant", name="pk_bullpen_reason"),
    )
    op.execute(
        "INSERT INTO bullpen_reason (queue, name, fingerprint, tenant, jobs)"
        " SELECT queue, name, coalesce(fingerprint, ''), coalesce(tenant, ''), count(*)"
        " FROM bullpen_job WHERE state = 'failed' GROUP BY 1, 2, 3, 4"
    )
    # To find the first and the last of a reason, not to count: whose they are is not in the way any more.
    op.drop_index("ix_bullpen_job_failed_why", "bullpen_job")
    whys = ["queue", "name", "fingerprint", "finished_ms", "key"]
    for name, columns in (("failed_why", whys), ("failed_why_of_tenant", ["tenant", *whys])):
        op.create_index(
            f"ix_bullpen_job_{name}",
            "bullpen_job",
            columns,
            sqlite_where=sa.text("state = 'failed'"),
            postgresql_where=sa.text("state = 'failed'"),
        )
