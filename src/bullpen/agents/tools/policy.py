"""What is done about a call of which nobody knows whether it was made: its worker died in the middle."""

from enum import StrEnum


class Policy(StrEnum):
    """What a tool allows after a crash. Each call is on record before it is made, and its result after."""

    READ_ONLY = "read-only"
    """It changes nothing: it is called again."""
    IDEMPOTENT = "idempotent"
    """It is called again with the same key, by which it does its work once."""
    RECONCILE = "reconcile"
    """It is asked what became of the call, and called again only if nothing did."""
    ONCE = "once"
    """It must not be called twice: the run waits for a person, who says what became of it."""
