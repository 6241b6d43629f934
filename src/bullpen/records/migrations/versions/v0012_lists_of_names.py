"""Lists of one name, one workspace and one reason of failure by index."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_index("ix_bullpen_job_name_added", "bullpen_job", ["name", "added_ms", "key"])
    for column in ("workspace", "fingerprint"):
        is_there = sa.text(f"{column} IS NOT NULL")
        op.create_index(
            f"ix_bullpen_job_{column}_added",
            "bullpen_job",
            [column, "added_ms", "key"],
            sqlite_where=is_there,
            postgresql_where=is_there,
        )
    # Lists are by the time at which jobs were added, so no question went down this one.
    op.drop_index("ix_bullpen_job_failed", "bullpen_job")
