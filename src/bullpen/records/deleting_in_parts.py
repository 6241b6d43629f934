"""Deleting any number of rows, some at a time: whoever else wants to write has its turn in between."""

from sqlalchemy import Delete

from bullpen.records.database import Database

TOGETHER = 500
"""Rows in one transaction: others wait for it."""


async def delete_by_parts(database: Database, some: Delete) -> int:
    """Run a statement that deletes up to TOGETHER rows until none is left; how many rows that were."""
    gone = 0
    while True:
        async with database.writing() as connection:
            now_gone = (await connection.execute(some)).rowcount
        gone += now_gone
        if now_gone < TOGETHER:
            return gone
