"""`bullpen budgets`: what a tenant's agents may spend in a day, a month or in all, set where the records are."""

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from bullpen.cli.keys import add_records, note, opened_records
from bullpen.cli.showing import Show
from bullpen.cli.tables import Column, Row
from bullpen.cli.times import stamp
from bullpen.cli.verb import OK, Verb, add_json, whole

if TYPE_CHECKING:
    from bullpen.records.credits.words import TenantBudget

_PERIODS = ("day", "month", "total")
_COLUMNS = ("period", "credits", "held", "spent", "left", "renews")
_EXAMPLES = """
  bullpen budgets --tenant acme                         what is used, and when it renews
  bullpen budgets set day 500 --tenant acme             at most 500 credits in each day of UTC
  bullpen budgets set total 20000 --tenant acme
  bullpen budgets remove day --tenant acme
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_records(parser, default=None)
    _add_tenant(parser, default="default")
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts (without one, the budgets are listed)")
    give = acts.add_parser(
        "set",
        help="set the most that it may spend in each period",
        description="Let a tenant spend at most so much in each period. What this one has used already counts.",
    )
    remove = acts.add_parser(
        "remove",
        help="remove the limit; its purse still bounds it",
        description="Let a tenant spend what its purse has.",
    )
    for one in (give, remove):
        one.add_argument("period", metavar="PERIOD", choices=_PERIODS, help="day or month (UTC), or total")
        _add_tenant(one)
        add_records(one)
        add_json(one)
    give.add_argument("credits", metavar="CREDITS", type=whole(0), help="whole credits")


def _add_tenant(parser: argparse.ArgumentParser, *, default: object = argparse.SUPPRESS) -> None:
    parser.add_argument("--tenant", metavar="T", default=default, help="whose budgets (default)")


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened_records(args) as records:
        from bullpen.agents.llm.prices import micro
        from bullpen.records.credits.words import Period

        match args.act:
            case "set":
                made = await records.credits.set_budget(args.tenant, Period(args.period), micro(args.credits))
                show.answer(_json(made), f"{args.tenant} may spend {args.credits} credits: {_PHRASES[args.period]}")
                await note(records, "budget.set", args.period, args.tenant, credits=args.credits)
            case "remove":
                await records.credits.remove_budget(args.tenant, Period(args.period))
                gone = {"tenant": args.tenant, "period": args.period}
                show.answer(gone, f"{args.tenant} has no budget any more of this period: {args.period}")
                await note(records, "budget.remove", args.period, args.tenant)
            case _:
                _list(await records.credits.budgets_of(args.tenant), show)
    return OK


_PHRASES = {"day": "in each day of UTC", "month": "in each month of UTC", "total": "in all"}


def _json(budget: "TenantBudget") -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(budget)
    return found | {"left": budget.left}


def _list(budgets: "list[TenantBudget]", show: Show) -> None:
    from bullpen.agents.llm.prices import as_credits

    if show.as_json:
        show.document([_json(one) for one in budgets])
    elif not budgets:
        show.line("No budgets.")
    else:
        rows: list[Row] = [
            [
                one.period.value,
                *(f"{as_credits(amount):,f}" for amount in (one.most, one.held, one.spent, one.left)),
                "never" if one.renews_ms is None else stamp(one.renews_ms),
            ]
            for one in budgets
        ]
        show.table([Column(name, right=name not in ("period", "renews")) for name in _COLUMNS], rows)


VERB = Verb("budgets", "set and show what a tenant may spend in a day, a month or in all", _EXAMPLES, arguments, run)
