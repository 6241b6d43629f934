"""How secrets are kept in the records, for `bullpen doctor`: looked at, and neither read nor migrated."""

from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import BullpenError
from bullpen.records.database import database_at, parse_address
from bullpen.records.records import DEFAULT_RECORDS, RECORDS
from bullpen.records.sealing import SEALED, SECRET_KEY, sealer_from_environment
from bullpen.records.tables.webhooks import webhook
from bullpen.settings import told
from bullpen.stores.finding import Finding

_CHECK = "secrets"


async def about_secrets() -> list[Finding]:
    """Nothing where there are no webhooks."""
    try:
        sealer = sealer_from_environment()
        sealed, plain = await _kept()
    except (BullpenError, SQLAlchemyError) as error:
        is_key = SECRET_KEY in str(error)
        return [Finding("bad", _CHECK, str(error), f"set {SECRET_KEY} to a key of Fernet")] if is_key else []
    if plain:
        fix = f"set {SECRET_KEY}" if not sealer.has_key else "they are encrypted with their next delivery"
        return [Finding("warn", _CHECK, f"{plain} of webhooks are not encrypted in the records", fix)]
    if sealed and not sealer.has_key:
        return [Finding("warn", _CHECK, f"{sealed} of webhooks are encrypted, without a key here", f"set {SECRET_KEY}")]
    return [Finding("ok", _CHECK, f"{sealed} of webhooks, encrypted")] if sealed else []


async def _kept() -> tuple[int, int]:
    """How many are encrypted, and how many are not."""
    address = told(RECORDS) or DEFAULT_RECORDS
    if not _is_there(address):
        return 0, 0
    database = database_at(address, SYSTEM_CLOCK)
    try:
        async with database.reading() as connection:
            is_sealed = webhook.c.secret.startswith(SEALED)
            counts = select(func.count().filter(is_sealed), func.count().filter(~is_sealed)).select_from(webhook)
            sealed, plain = (await connection.execute(counts)).one()
    finally:
        await database.close()
    return sealed, plain


def _is_there(address: str) -> bool:
    """Looking must not make a file."""
    url = parse_address(address)
    return not url.drivername.startswith("sqlite") or Path(url.database or "").is_file()
