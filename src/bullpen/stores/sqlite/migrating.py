"""The way of a file from an older version to this, and the refusal of a newer one."""

import sqlite3

from bullpen.errors import StoreCorrupt, StoreTooNew
from bullpen.stores.sqlite import schema


def check_version(db: sqlite3.Connection, path: str) -> int:
    """The file's version; refuses a newer one. Asked in each transaction: a newer Bullpen may migrate an open file."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found > schema.VERSION:
        raise StoreTooNew(
            f"{path} has schema version {found}; this Bullpen knows up to {schema.VERSION}: upgrade it."
            " Nothing was changed."
        )
    return int(found)


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Bring the file to this version in one transaction; refuse a newer one.

    The caller holds the turn lock, so no other process migrates at the same time.
    """
    found = check_version(db, path)
    if found == schema.VERSION:
        return
    if found == 0 and db.execute("SELECT 1 FROM sqlite_schema").fetchone():
        raise StoreCorrupt(f"{path} is no Bullpen file: it has other tables. Nothing was changed; name another file.")
    db.execute("BEGIN IMMEDIATE")
    try:
        for script in schema.MIGRATIONS[found:]:
            for statement in script.split(";"):
                if statement.strip():
                    db.execute(statement)
        db.execute(f"PRAGMA user_version = {schema.VERSION}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
