"""`bullpen migrate`: says what is to do, does it, and makes nothing that was not there."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import create_engine

from bullpen import Store
from bullpen.records.migrating import HEAD, upgrade_to
from bullpen.stores.sqlite.schema import VERSION
from tests.cli.commands import Folder
from tests.support.places import only_on_sqlite


def _older(path: Path) -> str:
    """Records as the first version made them."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        upgrade_to(connection, "0001")
    engine.dispose()
    return f"sqlite:{path}"


def test_records_are_checked_and_then_migrated(folder: Folder, tmp_path: Path) -> None:
    records = _older(tmp_path / "old.db")
    for _ in range(2):
        checked = folder.bullpen("migrate", "--check", "--records", records, "--json")
        assert checked.code == 1
        wanted = {"what": "records (sqlite)", "version": "0001", "newest": HEAD, "is_due": True}
        assert wanted in checked.json["migrations"]
    done = folder.bullpen("migrate", "--records", records)
    assert done.code == 0
    assert f"migrated from 0001 to {HEAD}" in done.out
    again = folder.bullpen("migrate", "--check", "--records", records)
    assert again.code == 0
    assert f"up to date at {HEAD}" in again.out


@only_on_sqlite
async def test_the_file_of_the_queues_is_told(folder: Folder, store: Store) -> None:
    (queues, records) = folder.bullpen("migrate", "--json").json["migrations"]
    assert (queues["version"], queues["is_due"]) == (str(VERSION), False)
    assert (records["version"], records["newest"]) == (None, None)


def test_what_is_not_there_is_not_made(folder: Folder, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert folder.bullpen("migrate").code == 0
    assert folder.bullpen("migrate", "--check").code == 0
    assert [path for path in tmp_path.rglob("*.db") if path not in before] == []


def test_a_newer_database_is_refused(folder: Folder, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    records = _older(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE bullpen_version SET version_num = '9999'")
    answer = folder.bullpen("migrate", "--records", records)
    assert answer.code == 1
    assert "9999" in answer.err
