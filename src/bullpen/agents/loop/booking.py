"""The credits of a task in its ledger: what goes wrong with them, and how all of them are settled at its end."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from bullpen.errors import BillingError, IdempotencyConflict, RecordMissing
from bullpen.observing import Observers
from bullpen.records.chained import Part
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.words import Hold, HoldState, Settled
from bullpen.records.runs.words import NewProgress, ProgressKind

T = TypeVar("T")

logger = logging.getLogger("bullpen.agents")


class Cost(NamedTuple):
    """What a task came to, in micro-credits."""

    charged: int = 0
    refunded: int = 0
    """Of all that was set aside for it, what went back to its payer."""


class Overruns:
    """Bills of a task above what was held for them, until they are on record: then somebody is told."""

    def __init__(self, run: str, task: str, observers: Observers) -> None:
        self._run = run
        self._task = task
        self._observers = observers
        self._found: list[tuple[str, Settled]] = []

    async def settle(self, ledger: Ledger, budget: Budget | None, held: Hold, price: int, *, memo: str) -> None:
        """Settle a bill above what is held. Who pays for the task pays for that too, as far as there is something."""
        with booking():
            if budget is not None:
                await budget.stretch(ledger, price - held.amount)
            self._found.append((memo, await ledger.settle(held, price, memo=memo)))

    def lines(self) -> list[NewProgress]:
        """For the log of the run."""
        return [
            NewProgress(
                ProgressKind.JOB_PROGRESS, {"message": f"{name} cost more than was held for it", "overrun": one.overrun}
            )
            for name, one in self._found
        ]

    def forget(self) -> None:
        """None of them came to be on record."""
        self._found.clear()

    def tell(self) -> None:
        """They are on record now."""
        for name, one in self._found:
            logger.warning(
                "run %s, task %s: %s cost %d micro-credits more than were held, %d of them are not covered",
                self._run,
                self._task,
                name,
                one.overrun,
                one.uncovered,
            )
            self._observers.overrun(one.overrun)
        self._found.clear()


async def settle_all(ledger: Ledger, task: str, budget: Budget | None) -> Cost:
    """Calls that were under way are presumed made, and the payer is charged; what it comes to. BillingError.

    What was presumed stands from then on: what came back later would lie in an account that nobody spends from.
    """
    with booking():
        for held in await ledger.holds_of(task, HoldState.HELD):
            await ledger.presume(held.id, memo="the run ended")
        for held in await ledger.holds_of(task, HoldState.PRESUMED):
            await ledger.settle(held.id, held.amount)
        if budget is None:
            return Cost()
        own = await budget.close(ledger)
        return Cost(own.spent, own.available)


@contextmanager
def booking() -> Iterator[None]:
    """What the ledger finds amiss, in a word that readers of runs know."""
    try:
        yield
    except (RecordMissing, IdempotencyConflict) as error:
        raise BillingError(str(error)) from error


def booked(part: Part[T]) -> Part[T]:
    """The same of what is done in a chain."""

    async def otherwise(n: int) -> T:
        with booking():
            return await part.otherwise(n)

    return Part(part.links, otherwise, part.then)
