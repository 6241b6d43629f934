"""The credits of a task in its ledger: what goes wrong with them, and how all of them are settled at its end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from bullpen.errors import BillingError, IdempotencyConflict, RecordMissing
from bullpen.records.chained import Part
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.words import HoldState

T = TypeVar("T")


async def settle_all(ledger: Ledger, run: str, budget: Budget | None) -> int:
    """Calls that were under way are presumed made, and the payer is charged; what it comes to. BillingError.

    What was presumed stands from then on: what came back later would lie in an account that nobody spends from.
    """
    with booking():
        for held in await ledger.holds_of(run, HoldState.HELD):
            await ledger.presume(held.id, memo="the run ended")
        for held in await ledger.holds_of(run, HoldState.PRESUMED):
            await ledger.settle(held.id, held.amount)
        return 0 if budget is None else (await budget.close(ledger)).spent


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

    return Part(part.links, otherwise)
