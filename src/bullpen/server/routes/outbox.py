"""The outbox of the records: rows that no relay sends until a person decides."""

from typing import Annotated

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from bullpen.job.record import JobRef
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note
from bullpen.server.models.outbox import OutboxProblemShown, OutboxShown
from bullpen.server.routes.routing import Limit, TheSite, family

router = family("outbox")

OutboxReader = Annotated[Caller, allowed("outbox:read", whole=True)]
OutboxWriter = Annotated[Caller, allowed("outbox:write", whole=True)]
Number = Annotated[int, Path(ge=0, lt=2**53)]


@router.get("/outbox")
async def outbox(caller: OutboxReader, site: TheSite, limit: Limit = 100) -> OutboxShown:
    """How many rows wait, and those with a problem, the oldest first: what is decided makes room for others."""
    standing = await site.relay.standing()
    found = await site.relay.problems(limit=limit)
    return OutboxShown(
        pending=standing.pending,
        oldest_ms=standing.oldest_ms,
        problems=standing.problems,
        items=[OutboxProblemShown.model_validate(one) for one in found],
    )


@router.post("/outbox/{number}/resend", name="outbox.resend", status_code=204)
async def resend(request: Request, caller: OutboxWriter, site: TheSite, number: Number) -> Response:
    """Send the row as if it were new: its job may run a second time."""
    return _decided(request, await site.relay.resend(number))


@router.delete("/outbox/{number}", name="outbox.discard", status_code=204)
async def discard(request: Request, caller: OutboxWriter, site: TheSite, number: Number) -> Response:
    """Drop the row: its job is not added by it."""
    return _decided(request, await site.relay.discard(number))


def _decided(request: Request, ref: JobRef) -> Response:
    note(request, job=str(ref))
    return Response(status_code=204)
