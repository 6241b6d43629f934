"""The home of journals in SQL, for the tests that every home passes."""

import itertools

import pytest

from bullpen.records.journal import SqlJournal
from bullpen.records.records import Records

pytest.register_assert_rewrite("bullpen.testing.journals")


class SqlHome:
    def __init__(self, records: Records) -> None:
        self.journal = SqlJournal(records.database)
        self._names = (f"run-{n}" for n in itertools.count())
        self._epochs = itertools.count(1)

    async def new_run(self) -> str:
        run = next(self._names)
        async with self.journal.writing() as on:
            await on.open(run)
        return run

    async def begin(self, run: str) -> int:
        epoch = next(self._epochs)
        async with self.journal.writing() as on:
            await on.begin(run, epoch)
        return epoch

    async def signal(self, run: str, name: str, payload: bytes) -> None:
        async with self.journal.writing() as on:
            await on.signal(run, name, payload)


@pytest.fixture
def home(records: Records) -> SqlHome:
    return SqlHome(records)
