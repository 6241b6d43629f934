"""Credits: bodies and answers. Amounts are micro-credits, a millionth of a credit each, unless told otherwise."""

from typing import Self

from pydantic import Field

from bullpen.agents.llm.prices import as_credits
from bullpen.records.credits.words import Account, EntryKind, Period
from bullpen.server.models.base import Body, Shown
from bullpen.server.models.records import Label


class DepositBody(Body):
    tenant: Label
    credits: int = Field(ge=1, le=1_000_000_000)
    """Whole credits."""
    key: Label | None = None
    """What asks for it, so that it is done once; else the `Idempotency-Key`."""
    memo: str = Field(default="", max_length=200, pattern=r"^[^\x00]*$")


class CreditsShown(Shown):
    """The same amounts as credits."""

    available: float
    held: float
    spent: float


class BalanceShown(Shown):
    tenant: str
    available: int
    held: int
    """Set aside for tasks that are not over."""
    spent: int
    credits: CreditsShown

    @classmethod
    def of(cls, account: Account) -> Self:
        sums = {name: getattr(account, name) for name in ("available", "held", "spent")}
        shown = CreditsShown(**{name: float(as_credits(amount)) for name, amount in sums.items()})
        return cls(tenant=account.tenant, credits=shown, **sums)


class EntryShown(Shown):
    number: int
    kind: EntryKind
    amount: int
    key: str
    available: int
    held: int
    spent: int
    memo: str
    at_ms: int


class TenantBudgetBody(Body):
    tenant: Label
    credits: int = Field(ge=0, le=1_000_000_000)
    """Whole credits; with 0 nothing is spent."""


class TenantBudgetShown(Shown):
    """What a tenant may spend in a period, and what is used of it."""

    tenant: str
    period: Period
    most: int
    held: int
    """Set aside in this period, for tasks that are not over."""
    spent: int
    left: int
    renews_ms: int | None
    """When all of it is there again; null if never."""
