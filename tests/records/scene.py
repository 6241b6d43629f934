"""Jobs that are claimed and settled as a test says."""

from bullpen.job.verdicts import Settlement, Verdict
from bullpen.stores.base import Store


class Scene:
    """Claims and settles as it is told."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._asked = 0

    async def end(self, verdict: Verdict, queue: str = "mail") -> str | None:
        self._asked += 1
        claimed = await self.store.claim(
            {queue: 1}, worker="w", lease_ms=60_000, request=f"claim {id(self)} {self._asked}"
        )
        if not claimed.jobs:
            return None
        lease = claimed.jobs[0].lease
        await self.store.settle([Settlement(lease, verdict)], request=f"settle {id(self)} {self._asked}")
        return lease.ref.id
