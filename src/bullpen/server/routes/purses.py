"""Credits: what a tenant has, what became of it, and what is put in."""

import secrets
from typing import Annotated

from fastapi import Header, Query
from starlette.requests import Request

from bullpen.agents.llm.prices import micro
from bullpen.errors import RecordMissing
from bullpen.records.credits.budget import account_of
from bullpen.records.credits.credits import purse
from bullpen.records.credits.words import Account
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note
from bullpen.server.models.base import Page
from bullpen.server.models.credits import BalanceShown, DepositBody, EntryShown
from bullpen.server.routes.filtering import tenant_to_charge
from bullpen.server.routes.routing import Cursor, Millis, Text, TheSite, agents_family

router = agents_family("credits")

CreditsReader = Annotated[Caller, allowed("credits:read")]
Depositor = Annotated[Caller, allowed("credits:write", whole=True)]


@router.get("/credits")
async def balance(caller: CreditsReader, site: TheSite, tenant: Text = None) -> BalanceShown:
    """What a tenant has, what is set aside for its tasks, and what it has spent."""
    payer = tenant_to_charge(caller, tenant)
    try:
        return BalanceShown.of(await site.records.credits.balance(payer))
    except RecordMissing:
        # Nothing was ever put in.
        return BalanceShown.of(Account(id=purse(payer), tenant=payer, available=0, held=0, spent=0))


@router.get("/credits/statement")
async def statement(
    caller: CreditsReader,
    site: TheSite,
    tenant: Text = None,
    task: Text = None,
    since_ms: Millis = None,
    until_ms: Millis = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Cursor = None,
) -> Page[EntryShown]:
    """All that moved, the newest first; the sums are those after each entry.

    With `task` it is that of one task: each call, and the version of the prices that it was charged by.
    """
    payer = tenant_to_charge(caller, tenant)
    try:
        page = await site.records.credits.statement(
            payer, task and account_of(task), since_ms=since_ms, until_ms=until_ms, limit=limit, cursor=cursor
        )
    except RecordMissing:
        return Page(items=[])
    return Page(items=[EntryShown.model_validate(entry) for entry in page.entries], next_cursor=page.next_cursor)


@router.post("/credits/deposits", name="credits.deposit", status_code=201)
async def deposit(
    request: Request,
    caller: Depositor,
    site: TheSite,
    body: DepositBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> BalanceShown:
    """Put credits into a tenant's purse; the same `key` again changes nothing."""
    note(request, target=body.tenant, tenant=body.tenant, credits=body.credits)
    key = body.key or idempotency_key or secrets.token_hex(16)
    after = await site.records.credits.deposit(body.tenant, micro(body.credits), key=key, memo=body.memo)
    return BalanceShown.of(after)
