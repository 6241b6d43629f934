"""Databases of records that are at the newest version from the start: made once, and copied for each test."""

import asyncio
import functools
import shutil
import tempfile
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bullpen.records.records import Records
from tests.support.postgres_server import PostgresServer


def migrated_file(path: Path) -> str:
    """The address of a new SQLite file."""
    shutil.copy(_template(), path)
    return f"sqlite:{path}"


@functools.cache
def _template() -> Path:
    path = Path(tempfile.mkdtemp(prefix="bullpen-records-")) / "records.db"
    _apart(_migrate(f"sqlite:{path}"))
    return path


def migrated_database(server: PostgresServer) -> str:
    """The address of a new database of this server."""
    return server.new_database(like=_database_of(server))


@functools.cache
def _database_of(server: PostgresServer) -> str:
    address = server.new_database()
    _apart(_migrate(address))
    return address.rpartition("/")[2]


async def _migrate(address: str) -> None:
    records = await Records.open(address)
    await records.close()


def _apart(work: Coroutine[Any, Any, None]) -> None:
    """In a loop of its own: fixtures may be made while another one runs."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
