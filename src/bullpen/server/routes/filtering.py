"""Which jobs a caller asks for, as far as they may see them."""

from typing import Annotated

from fastapi import Depends

from bullpen.records.model.searching import JobFilter
from bullpen.server.access.allowing import JobReader
from bullpen.server.access.caller import Caller
from bullpen.server.problems import forbidden
from bullpen.server.routes.routing import Millis, Text


async def asked_filter(
    caller: JobReader,
    queue: Text = None,
    tenant: Text = None,
    workspace: Text = None,
    name: Text = None,
    tag: Text = None,
    fingerprint: Text = None,
    error_kind: Text = None,
    since_ms: Millis = None,
    until_ms: Millis = None,
    q: Text = None,
) -> JobFilter:
    """What the query of a list says."""
    return JobFilter(
        queue=queue,
        queues=None if caller.queues is None else sorted(caller.queues),
        tenant=tenant_of(caller, tenant),
        workspace=workspace,
        name=name,
        tag=tag,
        fingerprint=fingerprint,
        error_kind=error_kind,
        since_ms=since_ms,
        until_ms=until_ms,
        text=q,
    )


TheFilter = Annotated[JobFilter, Depends(asked_filter)]


def tenant_of(caller: Caller, asked: str | None) -> str | None:
    """The tenant to look at: the caller's own, if they have one; another's is refused."""
    if caller.tenant is not None and asked not in (None, caller.tenant):
        raise forbidden("tenant: the caller sees its own only")
    return caller.tenant or asked


DEFAULT_TENANT = "default"
"""Who pays where nobody is named, as in an application that has no tenants."""


def tenant_to_charge(caller: Caller, asked: str | None) -> str:
    """The caller's own, or the one they name; Refused where that is not theirs to name."""
    return tenant_of(caller, asked) or DEFAULT_TENANT
