"""How amounts change the sums of an account, and the entries that tell of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bullpen.records.credits.words import EntryKind, Hold, Settled


class Move(NamedTuple):
    kind: EntryKind
    amount: int
    available: int = 0
    held: int = 0
    spent: int = 0


def hold_of(amount: int) -> Move:
    return Move(EntryKind.HOLD, amount, available=-amount, held=amount)


def charges(held: Hold, price: int) -> list[Move]:
    """Of what is held, so much is spent, and the rest is available again."""
    rest = held.amount - price
    charge = Move(EntryKind.CHARGE, price, held=-price, spent=price)
    refund = Move(EntryKind.REFUND, rest, held=-rest, available=rest)
    return [move for move in (charge, refund) if move.amount]


def outcome_of(held: Hold, price: int) -> Settled:
    charged = min(price, held.amount)
    return Settled(charged=charged, refunded=held.amount - charged, overrun=price - charged)


def sums_of(moves: Sequence[Move]) -> dict[str, int]:
    """What they come to, as the ledger's statements call it."""
    return {
        "more_available": sum(move.available for move in moves),
        "more_held": sum(move.held for move in moves),
        "more_spent": sum(move.spent for move in moves),
    }


def lines_of(moves: Sequence[Move]) -> list[dict[str, Any]]:
    """The entries, each with the sums after it, counted back from those after the last."""
    available = held = spent = 0
    lines = []
    for move in reversed(moves):
        sums = {"available": available, "held": held, "spent": spent}
        lines.append({"kind": move.kind, "amount": move.amount, **sums})
        available, held, spent = available - move.available, held - move.held, spent - move.spent
    return lines[::-1]
