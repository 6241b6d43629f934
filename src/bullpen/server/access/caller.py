"""Someone who calls, as far as it was proven."""

import hashlib
from enum import StrEnum

import msgspec

from bullpen.records.keys import Role
from bullpen.server.access.roles import OF_QUEUES, ROLES

MAX_CALLER = 200
"""Of the columns that keep who did something."""


class CallerKind(StrEnum):
    """How they proved who they are."""

    OPEN = "open"
    """Not at all: nobody has set up access yet, and only this machine is served."""
    KEY = "key"
    JWT = "jwt"
    SESSION = "session"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """As the audit log has it: `key:<prefix>`, `user:<name>`, `jwt:<subject>` or `local`."""
    role: Role
    kind: CallerKind
    tenant: str | None = None
    """All that they see and touch; None: all tenants."""
    queues: frozenset[str] | None = None
    """The same of queues."""
    csrf: str | None = None
    """Of a session: to be sent along with each write."""

    @property
    def scope(self) -> str:
        """Under which their requests are remembered: of one length, and nobody else's."""
        whose = msgspec.json.encode([self.kind, self.name, self.tenant])
        return hashlib.sha256(whose).hexdigest()

    @property
    def permissions(self) -> frozenset[str]:
        return ROLES[self.role] if self.queues is None else ROLES[self.role] & OF_QUEUES

    def sees_queue(self, queue: str) -> bool:
        return self.queues is None or queue in self.queues

    def sees_tenant(self, tenant: str | None) -> bool:
        return self.tenant is None or self.tenant == tenant


def named(kind: str, who: str) -> str:
    """Their name, no longer than what keeps it: of a long one the end is a digest, so that nobody is another."""
    name = f"{kind}:{who}"
    if len(name) <= MAX_CALLER:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{name[: MAX_CALLER - len(digest) - 1]}~{digest}"


LOCAL = Caller(name="local", role=Role.ADMIN, kind=CallerKind.OPEN)
