"""The embedded store: one SQLite file, no server, many processes of one machine."""

from bullpen.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
