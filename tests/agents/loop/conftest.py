"""Records on SQLite and on PostgreSQL."""

from tests.records.conftest import address, clock, postgres_server, records

__all__ = ["address", "clock", "postgres_server", "records"]
