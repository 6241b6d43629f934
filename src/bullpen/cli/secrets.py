"""How secrets are kept in the records, for `bullpen doctor`: looked at, and neither read nor migrated."""

from pathlib import Path

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.exc import SQLAlchemyError

from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import BullpenError
from bullpen.records.database import database_at, parse_address
from bullpen.records.records import DEFAULT_RECORDS, RECORDS
from bullpen.records.sealing import SEALED, SECRET_KEY, sealer_from_environment
from bullpen.records.settings import SLACK
from bullpen.records.tables.access import alert
from bullpen.records.tables.webhooks import webhook
from bullpen.settings import told
from bullpen.stores.finding import Finding

_CHECK = "secrets"
_SECRETS: dict[str, ColumnElement[str]] = {
    "webhooks": webhook.c.secret,
    "alerts": alert.c.channel[SLACK].as_string(),
}


async def about_secrets() -> list[Finding]:
    """Nothing where there are neither webhooks nor alerts that go to Slack."""
    try:
        sealer = sealer_from_environment()
        sealed, plain = await _kept()
    except (BullpenError, SQLAlchemyError) as error:
        is_key = SECRET_KEY in str(error)
        return [Finding("bad", _CHECK, str(error), f"set {SECRET_KEY} to a key of Fernet")] if is_key else []
    if plain:
        fix = f"set {SECRET_KEY}" if not sealer.has_key else "they are encrypted with their next delivery"
        return [Finding("warn", _CHECK, f"{_in_words(plain)} are not encrypted in the records", fix)]
    if sealed and not sealer.has_key:
        message = f"{_in_words(sealed)} are encrypted, without a key here"
        return [Finding("warn", _CHECK, message, f"set {SECRET_KEY}")]
    return [Finding("ok", _CHECK, f"{_in_words(sealed)}, encrypted")] if sealed else []


async def _kept() -> tuple[dict[str, int], dict[str, int]]:
    """Of what how many are encrypted, and of what how many are not."""
    address = told(RECORDS) or DEFAULT_RECORDS
    if not _is_there(address):
        return {}, {}
    sealed, plain = {}, {}
    database = database_at(address, SYSTEM_CLOCK)
    try:
        async with database.reading() as connection:
            for name, secret in _SECRETS.items():
                is_sealed = secret.startswith(SEALED)
                counts = select(func.count().filter(is_sealed), func.count().filter(~is_sealed))
                sealed[name], plain[name] = (await connection.execute(counts.where(secret.is_not(None)))).one()
    finally:
        await database.close()
    return _some(sealed), _some(plain)


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _in_words(counts: dict[str, int]) -> str:
    return " and ".join(f"{count} of {name}" for name, count in counts.items())


def _is_there(address: str) -> bool:
    """Looking must not make a file."""
    url = parse_address(address)
    return not url.drivername.startswith("sqlite") or Path(url.database or "").is_file()
