"""`bullpen keys`: API keys of the server, made, listed and revoked where its records are."""

import argparse
import contextlib
import getpass
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Row
from bullpen.cli.times import ago, seconds
from bullpen.cli.verb import OK, Verb, add_json
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import BadHandler

if TYPE_CHECKING:
    from bullpen.records.keys import ApiKey
    from bullpen.records.records import Records

ROLES = ("admin", "operator", "reviewer", "producer", "worker")
_EXAMPLES = """
  bullpen keys                                          all of them, never their text
  bullpen keys create deploy --role admin
  bullpen keys create acme-web --role producer --tenant acme --expires 90d
  bullpen keys create gpu-box --role worker --queue images
  bullpen keys revoke 3f2a9c0d41e84b7c9d3c1f0a5b6e7d80
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_records(parser, default=None)
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts (without one, the keys are listed)")
    create = acts.add_parser(
        "create", help="create a key and show it once", description="Create a key and show it once."
    )
    create.add_argument("name", metavar="NAME", help="what it is for")
    add_role(create)
    create.add_argument("--queue", action="append", dest="queues", metavar="Q", help="only this queue; may be repeated")
    create.add_argument("--expires", type=seconds, metavar="TIME", help="expires after that time (never)")
    revoke = acts.add_parser("revoke", help="revoke a key", description="Revoke a key, so that nobody can use it.")
    revoke.add_argument("id", metavar="ID", help="id of the key, as the list has it")
    for one in (create, revoke):
        add_records(one)
        add_json(one)


def add_records(parser: argparse.ArgumentParser, *, default: object = argparse.SUPPRESS) -> None:
    parser.add_argument(
        "--records",
        metavar="ADDRESS",
        default=default,
        help="the SQL records: sqlite:PATH or postgresql://… (else $BULLPEN_RECORDS, else a file in ./.bullpen/)",
    )


def add_role(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--role", required=True, choices=ROLES, help="what it may do")
    parser.add_argument("--tenant", metavar="T", help="the only tenant that it sees (all tenants)")


@contextlib.asynccontextmanager
async def opened_records(args: argparse.Namespace) -> AsyncIterator["Records"]:
    """The records that were asked for; BadHandler without the extra that they need."""
    try:
        from bullpen.records.records import Records
    except ImportError as error:
        raise BadHandler(f"this needs more: pip install 'bullpen[server]' ({error.name} is missing)") from error
    async with await Records.open(args.records) as records:
        yield records


async def note(records: "Records", action: str, target: str, tenant: str | None, **details: Any) -> None:
    """Tell the audit log what was done from here, under the name that this machine knows."""
    await records.audit.note(_who(), action, target, tenant=tenant, details=details)


def _who() -> str:
    # In a container there may be no name for who runs this.
    with contextlib.suppress(OSError, KeyError):
        return f"cli:{getpass.getuser()}"
    return "cli"


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened_records(args) as records:
        match args.act:
            case "create":
                await _create(records, args, show)
            case "revoke":
                key = await records.keys.revoke(args.id)
                show.answer(key_json(key), f"{key.name} ({key.prefix}) is revoked")
                await note(records, "key.revoke", key.id, key.tenant)
            case _:
                _list(await _all(records), show)
    return OK


async def _all(records: "Records") -> "list[ApiKey]":
    from bullpen.records.paging import MOST, all_of

    return await all_of(lambda cursor: records.keys.list(limit=MOST, cursor=cursor))


async def _create(records: "Records", args: argparse.Namespace, show: Show) -> None:
    from bullpen.records.keys import NewKey

    expires_ms = None if args.expires is None else SYSTEM_CLOCK.now_ms() + round(args.expires * 1000)
    new = NewKey(name=args.name, role=args.role, tenant=args.tenant, queues=args.queues, expires_ms=expires_ms)
    key, text = await records.keys.create(new, created_by="system")
    show.answer(key_json(key) | {"text": text}, f"{text}\nThis is the only time that it is shown.")
    await note(records, "key.create", key.id, key.tenant, name=key.name, role=key.role)


def key_json(key: "ApiKey") -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(key)
    return found


def _list(keys: "list[ApiKey]", show: Show) -> None:
    if show.as_json:
        show.document([key_json(key) for key in keys])
    elif not keys:
        show.line("No keys.")
    else:
        now_ms = SYSTEM_CLOCK.now_ms()
        names = ("id", "prefix", "name", "role", "tenant", "last used", "standing")
        rows: list[Row] = [
            [
                key.id,
                key.prefix,
                key.name,
                str(key.role),
                key.tenant or "",
                ago(key.last_used_ms, now_ms),
                _standing(key),
            ]
            for key in keys
        ]
        show.table([Column(name, shrinks=name in ("name", "tenant")) for name in names], rows)


def _standing(key: "ApiKey") -> Cell:
    if key.is_good_at(SYSTEM_CLOCK.now_ms()):
        return Cell("good", "green")
    return Cell("revoked" if key.revoked_ms is not None else "expired", "dim")


VERB = Verb("keys", "make, list and revoke API keys of the server", _EXAMPLES, arguments, run)
