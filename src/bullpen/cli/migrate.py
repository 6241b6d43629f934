"""`bullpen migrate`: bring the tables of the records and of the queue's file up to date, or say what is to do."""

import argparse
from pathlib import Path
from typing import NamedTuple

from bullpen.cli.keys import add_records
from bullpen.cli.showing import Show
from bullpen.cli.tables import Column
from bullpen.cli.verb import NO, OK, Verb
from bullpen.clock import SYSTEM_CLOCK
from bullpen.settings import store_from, told
from bullpen.stores.sqlite import SqliteStore
from bullpen.stores.sqlite.diagnosing import path_of, version_of
from bullpen.stores.sqlite.schema import VERSION

_EXAMPLES = """
  bullpen migrate                     before the new version is rolled out
  bullpen migrate --check             exits with 1 if there is something to do
  bullpen migrate --records postgresql://bullpen@db/bullpen

  Whatever opens the records or the file migrates it too: this is to choose the moment.
"""


class Migration(NamedTuple):
    what: str
    version: str | None
    """Where it is; None if there is nothing yet."""
    newest: str | None
    """None for what has no versions, or is not there."""

    @property
    def is_due(self) -> bool:
        return self.newest is not None and self.version != self.newest

    def words(self, *, is_check: bool) -> str:
        if self.newest is None:
            return "nothing to migrate"
        if not self.is_due:
            return f"up to date at {self.newest}"
        way = f"from {self.version or 'nothing'} to {self.newest}"
        return f"to be migrated {way}" if is_check else f"migrated {way}"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_records(parser, default=None)
    parser.add_argument(
        "--check", action="store_true", help="only report what is to be done; exit code 1 if there is anything"
    )


async def run(args: argparse.Namespace, show: Show) -> int:
    found = [await _store(args), *await _records(args)]
    if show.as_json:
        show.document({"migrations": [one._asdict() | {"is_due": one.is_due} for one in found], "done": not args.check})
    else:
        columns = (Column("what"), Column("outcome"))
        show.table(columns, [(one.what, one.words(is_check=args.check)) for one in found])
    return NO if args.check and any(one.is_due for one in found) else OK


async def _store(args: argparse.Namespace) -> Migration:
    store = store_from(args.store)
    path = path_of(store)
    if not isinstance(store, SqliteStore) or path is None or not path.exists():
        return Migration(f"queues ({store.facts.name})", None, None)
    version = await version_of(store)
    if not args.check and version != VERSION:
        await store.open()
        await store.close()
    return Migration("queues (sqlite)", str(version), str(VERSION))


async def _records(args: argparse.Namespace) -> list[Migration]:
    try:
        from bullpen.records import migrating
        from bullpen.records.database import database_at, parse_address
        from bullpen.records.records import DEFAULT_RECORDS, RECORDS
    except ImportError:
        return []  # whoever has no extra for the records has none
    address = args.records or told(RECORDS) or DEFAULT_RECORDS
    url = parse_address(address)
    name = f"records ({url.get_backend_name()})"
    if url.get_backend_name() == "sqlite" and not _is_there(url.database):
        return [Migration(name, None, None)]
    database = database_at(address, SYSTEM_CLOCK)
    try:
        version = await migrating.version_of(database)
        if not args.check:
            await migrating.migrate(database)
    finally:
        await database.close()
    return [Migration(name, version, migrating.HEAD)]


def _is_there(path: str | None) -> bool:
    return Path(path or "").is_file()


VERB = Verb("migrate", "bring the tables of records and queues up to date", _EXAMPLES, arguments, run)
