"""A store that is away when told to, also after it did what it was asked for."""

from collections.abc import Sequence

from bullpen import NewJob, Store, StoreUnavailable
from bullpen.stores.base import Added
from tests.support.around import StoreAround


class OutageStore(StoreAround):
    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_away = False
        self.answers_to_lose = 0
        """How many of the next adds take effect and are not answered."""

    async def open(self) -> None:
        self._fail_if_away()
        await self.inner.open()

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        self._fail_if_away()
        added = await self.inner.add(jobs, request=request)
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise StoreUnavailable("the answer was lost")
        return added

    def _fail_if_away(self) -> None:
        if self.is_away:
            raise StoreUnavailable("the store is away")
