"""The words of credits. All amounts are whole micro-credits."""

from enum import StrEnum

import msgspec

PURSE = "tenant:"
"""Begins the account that a tenant pays from."""


class EntryKind(StrEnum):
    """What moved, and between which of an account's three sums."""

    DEPOSIT = "deposit"
    """From outside to `available`."""
    WITHDRAWAL = "withdrawal"
    """From `available` to outside: what a task leaves goes back to its payer."""
    HOLD = "hold"
    """From `available` to `held`."""
    REFUND = "refund"
    """From `held` back to `available`; of a call that was charged without being known, from `spent`."""
    CHARGE = "charge"
    """From `held` to `spent`."""
    OVERRUN = "overrun"
    """From `available` to `spent`: the bill was more than had been held."""
    UNCOVERED = "uncovered"
    """A bill beyond all that was there. It moves nothing, since nothing may become negative; it is written down."""


class HoldState(StrEnum):
    HELD = "held"
    SETTLED = "settled"
    """The price is known, and the rest went back."""
    PRESUMED = "presumed"
    """Nobody knows whether the call was made: charged in full until it is known."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation's purse, or a budget: of a run, an activity, a period."""

    id: str
    tenant: str
    available: int
    held: int
    spent: int


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """So much is set aside in each of these accounts, for one purpose."""

    id: str
    accounts: tuple[str, ...]
    amount: int
    state: HoldState
    charged: int
    run: str | None = None
    """Whose step it pays for: of a run of agents, the id of the task."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a hold."""

    charged: int
    """Of what was held."""
    refunded: int
    overrun: int = 0
    """Billed above what was held: somebody should look."""
    uncovered: int = 0
    """Of that, what an account did not have."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a statement; the sums are those after it."""

    number: int
    account: str
    kind: EntryKind
    amount: int
    key: str
    """What asked for it, so that it is done once."""
    available: int
    held: int
    spent: int
    memo: str
    at_ms: int


class Statement(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]
    next_cursor: str | None


class Period(StrEnum):
    """Of a budget. Days and months are those of UTC."""

    DAY = "day"
    MONTH = "month"
    TOTAL = "total"
    """All that was ever spent: it does not renew."""


class TenantBudget(msgspec.Struct, frozen=True, kw_only=True):
    """How much a tenant may spend in a period, whatever its purse has; and what is used of that now."""

    tenant: str
    period: Period
    most: int
    held: int
    spent: int
    renews_ms: int | None
    """When all of it is there again; None if never."""

    @property
    def left(self) -> int:
        """A budget that was lowered, or a bill above what was held, may leave less than nothing: that is nothing."""
        return max(0, self.most - self.held - self.spent)
