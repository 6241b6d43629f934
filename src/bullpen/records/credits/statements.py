"""The statements of the ledger, which every step that costs something runs."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, literal_column, select, true, update

from bullpen.records.credits.words import Account, Hold, HoldState
from bullpen.records.database import Database
from bullpen.records.model.sql import new_in
from bullpen.records.prepared import Followed, Parameters, Prepared
from bullpen.records.tables.credits import account, entry, hold

_ACCOUNT = [account.c[name] for name in ("id", "tenant", "available", "held", "spent")]


class Statements:
    def __init__(self, database: Database) -> None:
        self.open = Prepared(database, new_in(database, account).returning(account.c.id))
        """Its id if it is new."""
        this = account.c.id == bindparam("account_id")
        self.account = Prepared(database, select(*_ACCOUNT).where(this))
        self.lock = Prepared(database, select(*_ACCOUNT).where(this).with_for_update())
        sums = {name: name for name in ("available", "held", "spent")}
        self.move = Followed(database, _moved, entry, counted=sums)
        """The account after it, with the entries; nothing where it has less."""
        self.hold = Followed(database, partial(_held, database))
        """Its id if it is new."""
        self.close = Followed(database, _closed)
        """Its id if it was in that state."""


def _moved(parameter: Parameters, *only_if: ColumnElement[bool]) -> Any:
    sums = {name: account.c[name] + parameter(f"more_{name}") for name in ("available", "held", "spent")}
    # The condition is part of the change: whoever was quicker is seen, on any database.
    is_enough = account.c.available + parameter("more_available") >= literal_column("0")
    this = account.c.id == parameter("account_id")
    return update(account).where(this, is_enough, *only_if).values(sums).returning(*_ACCOUNT)


def _held(database: Database, parameter: Parameters, *only_if: ColumnElement[bool]) -> Any:
    row = select(*(parameter(each.name, each.type) for each in hold.c)).where(*only_if or (true(),))
    return new_in(database, hold).from_select([each.name for each in hold.c], row).returning(hold.c.id)


def _closed(parameter: Parameters, *only_if: ColumnElement[bool]) -> Any:
    is_open = (hold.c.id == parameter("hold_id")) & (hold.c.state == parameter("state_before"))
    new: dict[str, Any] = {name: parameter(name) for name in ("state", "charged", "settled_ms")}
    return update(hold).where(is_open, *only_if).values(new).returning(hold.c.id)


def read_account(row: Sequence[Any]) -> Account:
    account_id, tenant, available, held, spent = row
    return Account(id=account_id, tenant=tenant, available=available, held=held, spent=spent)


def read_hold(row: Row[Any]) -> Hold:
    accounts: Sequence[str] = row.accounts
    return Hold(
        id=row.id,
        accounts=tuple(accounts),
        amount=row.amount,
        state=HoldState(row.state),
        charged=row.charged,
        run=row.run,
    )
