"""A task has a checkpoint for each step that changed its workspace, not only for the last."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    # SQLite makes the table anew: with the old one go, by their foreign key, the rows that are set aside here.
    is_made_anew = op.get_bind().dialect.name == "sqlite"
    if is_made_anew:
        op.execute("CREATE TEMPORARY TABLE part_aside AS SELECT * FROM bullpen_checkpoint_part")
    with op.batch_alter_table("bullpen_checkpoint") as table:
        table.add_column(sa.Column("number", sa.Integer(), nullable=False, server_default="1"))
        table.drop_constraint("uq_bullpen_checkpoint_task", type_="unique")
        table.create_unique_constraint("uq_bullpen_checkpoint_task", ["task", "number"])
    if is_made_anew:
        op.execute("DELETE FROM bullpen_checkpoint_part")
        op.execute("INSERT INTO bullpen_checkpoint_part SELECT * FROM part_aside")
        op.execute("DROP TABLE part_aside")
