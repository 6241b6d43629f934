"""Search whose time does not grow with what is found: beginnings of words, queues and failures by index.

Reasons of failures are counted by an index that has all they need.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_index(
        "ix_bullpen_job_failed_why",
        "bullpen_job",
        ["queue", "name", "fingerprint", "finished_ms", "key", "tenant", "state"],
        sqlite_where=sa.text("state = 'failed'"),
        postgresql_where=sa.text("state = 'failed'"),
    )
    # The words of a job name its queue now, and whether it failed: all are made anew by a scan of each queue.
    for table in ("bullpen_job_tag", "bullpen_job", "bullpen_tally"):
        op.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
    op.execute(sa.text("UPDATE bullpen_stream SET is_scanning = :yes, scan = scan + 1").bindparams(yes=True))
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DELETE FROM bullpen_job_text")
        return
    op.execute("DROP TABLE bullpen_job_text")
    op.execute(
        "CREATE VIRTUAL TABLE bullpen_job_text USING fts5"
        " (words, tokenize = 'unicode61', detail = 'none', prefix = '1 2 3 4 5 6 7 8')"
    )
