"""Tokens: which process claimed a job, and in which of its claims.

A lease's token starts with the job's key, so that settling needs no look-up by id; the rest
is what the job's row holds while it is active.
"""

import msgspec

from bullpen.job.record import Lease


class ClaimToken(msgspec.Struct, frozen=True):
    instance: str
    """The open store that claimed; beside the file its `.live` entry tells whether it lives."""
    number: int
    """Grows with each claim of the instance."""

    @property
    def text(self) -> str:
        return f"{self.instance}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> "ClaimToken":
        instance, _, number = text.rpartition(".")
        return cls(instance, int(number))


def lease_token(key: int, claim: str) -> str:
    return f"{key}:{claim}"


def key_and_token(lease: Lease) -> tuple[int, str]:
    """The job's key and the row's token; a token that we never gave matches no row."""
    key, _, token = lease.token.partition(":")
    return (int(key) if key.isdecimal() and len(key) < 19 else 0), token
