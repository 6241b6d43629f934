"""Files of runs and the checkpoints of their workspaces."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "bullpen_file",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("run", sa.String(64)),
        sa.Column("task", sa.String(64)),
        sa.Column("key", sa.String(200)),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("type", sa.String(20), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("mime", sa.String(200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["run"], ["bullpen_run.id"], name="fk_bullpen_file_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_file"),
        sa.UniqueConstraint("task", "key", "name", name="uq_bullpen_file_task"),
    )
    op.create_index("ix_bullpen_file_run", "bullpen_file", ["run", "created_ms", "id"])
    op.create_index("ix_bullpen_file_tenant", "bullpen_file", ["tenant", "created_ms", "id"])
    op.create_index("ix_bullpen_file_sha256", "bullpen_file", ["sha256"])
    op.create_index("ix_bullpen_file_expires", "bullpen_file", ["expires_ms"])
    op.create_table(
        "bullpen_checkpoint",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("task", sa.String(64), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["task"], ["bullpen_task.id"], name="fk_bullpen_checkpoint_task", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_bullpen_checkpoint"),
        sa.UniqueConstraint("task", name="uq_bullpen_checkpoint_task"),
    )
    op.create_index("ix_bullpen_checkpoint_sha256", "bullpen_checkpoint", ["sha256"])
    op.create_index("ix_bullpen_checkpoint_expires", "bullpen_checkpoint", ["expires_ms"])
    op.create_table(
        "bullpen_checkpoint_part",
        sa.Column("checkpoint", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(
            ["checkpoint"],
            ["bullpen_checkpoint.id"],
            name="fk_bullpen_checkpoint_part_checkpoint",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("checkpoint", "sha256", name="pk_bullpen_checkpoint_part"),
    )
    op.create_index("ix_bullpen_checkpoint_part_sha256", "bullpen_checkpoint_part", ["sha256"])
