"""Names that tenants choose for things which a queue holds once for all: kept apart, so that none meets another's.

A store knows one schedule of a name in a queue, one job for a subject, and one of an id. A caller with a tenant who
met another's would learn that it exists, or change it. So what such a caller names gets a mark of its tenant, which is
taken off again where the caller is shown the name of a schedule. The id of a job is shown with it, as everywhere.
"""

import hashlib

_DIGITS = 12
MARK_LENGTH = 1 + _DIGITS


def _mark(tenant: str) -> str:
    return "." + hashlib.sha256(tenant.encode()).hexdigest()[:_DIGITS]


def apart(tenant: str | None, name: str) -> str:
    """The name as the store has it, where this tenant's caller has chosen it."""
    return name if tenant is None else name + _mark(tenant)


def ids_of(tenant: str | None, job_id: str) -> tuple[str, ...]:
    """The ids that the store may have for a job of which this tenant's caller speaks, the likelier first."""
    return (job_id,) if tenant is None else (job_id, apart(tenant, job_id))


def as_chosen(tenant: str | None, stored: str) -> str:
    """The name as this tenant's caller knows it."""
    return stored if tenant is None else stored.removesuffix(_mark(tenant))
