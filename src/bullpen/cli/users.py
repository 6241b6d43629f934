"""`bullpen users`: people who log in to the dashboard, made, listed and changed where the records are."""

import argparse
import asyncio
import getpass
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from bullpen.cli.keys import ROLES, add_records, add_role, note, opened_records
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Row
from bullpen.cli.verb import OK, Verb, add_json
from bullpen.errors import BadOption

if TYPE_CHECKING:
    from bullpen.records.records import Records
    from bullpen.records.users import User

_EXAMPLES = """
  bullpen users                                         all of them
  bullpen users create ann --role admin                 asks for the password
  bullpen users create bob --role reviewer --tenant acme < password.txt
  bullpen users password ann
  bullpen users role bob operator
  bullpen users disable bob
  bullpen users enable bob
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_records(parser, default=None)
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts (without one, the users are listed)")
    create = acts.add_parser(
        "create",
        help="create a user; the password is asked for, or read from standard input",
        description="Make a user; the password is asked for, or read from the input.",
    )
    password = acts.add_parser(
        "password", help="set a new password", description="Give a user another password, and end all sessions."
    )
    disable = acts.add_parser(
        "disable", help="stop a user from logging in", description="Stop a user from logging in, and end all sessions."
    )
    enable = acts.add_parser(
        "enable", help="let a disabled user log in again", description="Let a user in again, with the same password."
    )
    role = acts.add_parser(
        "role", help="change the role", description="Give a user another role, and end all sessions."
    )
    for one in (create, password, disable, enable, role):
        one.add_argument("name", metavar="NAME", help="name of the user")
        add_records(one)
        add_json(one)
    add_role(create)
    role.add_argument("role", metavar="ROLE", choices=ROLES, help=f"what the user may do: {', '.join(ROLES)}")


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened_records(args) as records:
        match args.act:
            case "create":
                word = await _password()
                user = await records.users.create(args.name, word, role=args.role, tenant=args.tenant)
                show.answer(_user_json(user), f"{user.name} may log in as {user.role}")
                await note(records, "user.create", user.id, user.tenant, name=user.name, role=user.role)
            case "password":
                user = await records.users.named(args.name)
                await records.users.set_password(user.id, await _password())
                show.answer(_user_json(user), f"{user.name} has another password; all sessions are ended")
                await note(records, "user.password", user.id, user.tenant)
            case "disable":
                user = await records.users.named(args.name)
                await records.users.disable(user.id)
                show.answer(_user_json(user), f"{user.name} is let in no more")
                await note(records, "user.disable", user.id, user.tenant)
            case "enable":
                user = await records.users.named(args.name)
                user = await records.users.change(user.id, is_disabled=False)
                show.answer(_user_json(user), f"{user.name} may log in again as {user.role}")
                await note(records, "user.change", user.id, user.tenant, is_disabled=False)
            case "role":
                user = await records.users.named(args.name)
                # Whoever is at this machine can make another admin.
                user = await records.users.change(user.id, role=args.role, may_be_last=True)
                show.answer(_user_json(user), f"{user.name} is {user.role} now")
                await note(records, "user.change", user.id, user.tenant, role=user.role)
            case _:
                _list(await _all(records), show)
    return OK


async def _password() -> str:
    """Typed twice at a terminal, unseen; else the first line of the input. Not an option: others could see that."""
    if not sys.stdin.isatty():
        line: str = await asyncio.to_thread(sys.stdin.readline)
        return line.rstrip("\r\n")
    first = await asyncio.to_thread(getpass.getpass, "Password: ")
    if first != await asyncio.to_thread(getpass.getpass, "Again: "):
        raise BadOption("password: the two are not the same")
    return first


async def _all(records: "Records") -> "list[User]":
    from bullpen.records.paging import MOST, all_of

    return await all_of(lambda cursor: records.users.list(limit=MOST, cursor=cursor))


def _user_json(user: "User") -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(user)
    return found


def _list(users: "list[User]", show: Show) -> None:
    if show.as_json:
        show.document([_user_json(user) for user in users])
    elif not users:
        show.line("No users.")
    else:
        rows: list[Row] = [
            [
                user.name,
                str(user.role),
                user.tenant or "",
                Cell("good", "green") if user.disabled_ms is None else Cell("disabled", "dim"),
            ]
            for user in users
        ]
        show.table(
            [Column(name, shrinks=name in ("name", "tenant")) for name in ("name", "role", "tenant", "standing")], rows
        )


VERB = Verb("users", "make, list and change users of the dashboard", _EXAMPLES, arguments, run)
