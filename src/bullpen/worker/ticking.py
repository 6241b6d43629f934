"""The beginning of a tick: the next one is added before this one's handler runs."""

import logging

from bullpen.errors import StoreError
from bullpen.job.record import ClaimedJob
from bullpen.job.verdicts import Completed, Postponed, Verdict
from bullpen.stores.workplace import Workplace
from bullpen.upkeep.advancer import advance

logger = logging.getLogger("bullpen.worker")

_WAIT_MS = 1_000


class HeldBack(Exception):
    """This tick does not run now; the verdict says what becomes of it."""

    def __init__(self, why: str, verdict: Verdict) -> None:
        super().__init__(why)
        self.why = why
        self.verdict = verdict


class Ticker:
    def __init__(self, store: Workplace, *, may_advance: bool) -> None:
        self._store = store
        self._may_advance = may_advance

    async def begin(self, claimed: ClaimedJob) -> None:
        """Let the schedule go on; HeldBack if another tick of it runs and must not be run beside.

        A store that is away costs nothing but time: whoever looks for idle schedules adds the next tick.
        """
        try:
            start = await self._store.start_tick(claimed.lease)
            if start.record is not None and self._may_advance and not start.record.pending:
                await advance(self._store, start.record)
        except StoreError as error:
            logger.warning("the schedule of %s could not be looked at: %s", claimed.job.ref, error)
            return
        if start.running is not None:
            raise self._held_back(claimed, start.running)

    @staticmethod
    def _held_back(claimed: ClaimedJob, running: str) -> HeldBack:
        if claimed.job.attempts_made == 0:
            return HeldBack(f"skipped: {running} still runs", Completed())
        # An attempt has failed: to skip the next one would hide that.
        return HeldBack(f"waits: {running} still runs", Postponed(_WAIT_MS, f"{running} still runs"))
