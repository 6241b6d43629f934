"""Lists of one queue, and of one state in all queues, by index."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_index("ix_bullpen_job_queue_added", "bullpen_job", ["queue", "added_ms", "key"])
    op.create_index("ix_bullpen_job_any_state_added", "bullpen_job", [sa.text("(state || '')"), "added_ms", "key"])
