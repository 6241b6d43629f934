"""Credits: what a tenant has, what became of it, what is put in, and how much may be spent in a day or a month."""

import secrets
from typing import Annotated

from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response

from bullpen.agents.llm.prices import micro
from bullpen.errors import RecordMissing
from bullpen.records.credits.budget import account_of
from bullpen.records.credits.credits import purse
from bullpen.records.credits.words import Account, Period
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note
from bullpen.server.models.base import Page
from bullpen.server.models.credits import BalanceShown, DepositBody, EntryShown, TenantBudgetBody, TenantBudgetShown
from bullpen.server.routes.filtering import tenant_to_charge
from bullpen.server.routes.routing import Cursor, Millis, Text, TheSite, agents_family

router = agents_family("credits")

CreditsReader = Annotated[Caller, allowed("credits:read")]
CreditsWriter = Annotated[Caller, allowed("credits:write", whole=True)]


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
    caller: CreditsWriter,
    site: TheSite,
    body: DepositBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> BalanceShown:
    """Put credits into a tenant's purse; the same `key` again changes nothing."""
    note(request, target=body.tenant, tenant=body.tenant, credits=body.credits)
    key = body.key or idempotency_key or secrets.token_hex(16)
    after = await site.records.credits.deposit(body.tenant, micro(body.credits), key=key, memo=body.memo)
    return BalanceShown.of(after)


@router.get("/credits/budgets")
async def budgets(caller: CreditsReader, site: TheSite, tenant: Text = None) -> Page[TenantBudgetShown]:
    """What a tenant may spend in each period that has a budget, what is used of it, and when it renews."""
    found = await site.records.credits.budgets_of(tenant_to_charge(caller, tenant))
    return Page(items=[TenantBudgetShown.model_validate(one) for one in found])


@router.put("/credits/budgets/{period}", name="credits.budget")
async def set_budget(
    request: Request, caller: CreditsWriter, site: TheSite, period: Period, body: TenantBudgetBody
) -> TenantBudgetShown:
    """Let a tenant spend at most so many credits in each `day` or `month` of UTC, or in `total`.

    It counts from now on, with what was used in this period before. A run that has no room in it is refused, or
    stopped before its next call.
    """
    note(request, target=body.tenant, tenant=body.tenant, credits=body.credits)
    made = await site.records.credits.set_budget(body.tenant, period, micro(body.credits))
    return TenantBudgetShown.model_validate(made)


@router.delete("/credits/budgets/{period}", name="credits.unbudget", status_code=204)
async def remove_budget(
    request: Request, caller: CreditsWriter, site: TheSite, period: Period, tenant: Text = None
) -> Response:
    """Let a tenant spend what its purse has."""
    payer = tenant_to_charge(caller, tenant)
    note(request, target=payer, tenant=payer)
    await site.records.credits.remove_budget(payer, period)
    return Response(status_code=204)
