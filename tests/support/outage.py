"""A store that is away when told to, also after it did what it was asked for."""

from collections.abc import Sequence
from pathlib import Path

from bullpen import NewJob, SqliteStore, StoreUnavailable
from bullpen.stores.base import Added


class OutageStore(SqliteStore):
    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.is_away = False
        self.answers_to_lose = 0
        """How many of the next adds take effect and are not answered."""

    async def open(self) -> None:
        self._fail_if_away()
        await super().open()

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        self._fail_if_away()
        added = await super().add(jobs, request=request)
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise StoreUnavailable("the answer was lost")
        return added

    def _fail_if_away(self) -> None:
        if self.is_away:
            raise StoreUnavailable("the store is away")
