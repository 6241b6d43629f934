"""Lists of a tenant's jobs by state, and search within a tenant, by index."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_index(
        "ix_bullpen_job_tenant_state_added",
        "bullpen_job",
        ["tenant", "state", "added_ms", "key"],
        sqlite_where=sa.text("tenant IS NOT NULL"),
        postgresql_where=sa.text("tenant IS NOT NULL"),
    )
    # The words of a job name its tenant now: all are made anew by a scan of each queue.
    for table in ("bullpen_job_text", "bullpen_job_tag", "bullpen_job", "bullpen_tally"):
        op.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
    op.execute(sa.text("UPDATE bullpen_stream SET is_scanning = :yes, scan = scan + 1").bindparams(yes=True))
