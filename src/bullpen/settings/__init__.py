"""What a deployment is told, and the store that it names."""

from pathlib import Path

from bullpen.errors import BadOption
from bullpen.settings.reading import switch_from, whole_from
from bullpen.settings.told import Settings, told
from bullpen.stores.base import Store
from bullpen.stores.sqlite import SqliteStore

__all__ = [
    "CRON_ENABLED",
    "DEFAULT_STORE",
    "STORE",
    "Settings",
    "may_advance_schedules",
    "store_from",
    "switch_from",
    "told",
    "whole_from",
]

STORE = "BULLPEN_STORE"
CRON_ENABLED = "BULLPEN_CRON_ENABLED"
DEFAULT_STORE = "sqlite:.bullpen/queue.db"


def store_from(address: str | None = None) -> Store:
    """The store at an address: `sqlite:PATH` (or a path that ends in .db), `redis://HOST` and its kin.

    Without one, the setting `BULLPEN_STORE` says where; without that it is a file in `./.bullpen/`.
    `sqlite:PATH?sync=normal` gives up the last moments at a power loss for speed.
    `docs/reference/settings.md` has all forms of an address.
    """
    address = address or told(STORE) or DEFAULT_STORE
    scheme, colon, rest = address.partition(":")
    if not colon and address.endswith(".db"):
        scheme, rest = "sqlite", address
    match scheme:
        case "sqlite":
            return _sqlite(address, rest)
        case "redis" | "rediss" | "unix" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster" | "rediss+cluster":
            from bullpen.stores.redis import RedisStore

            return RedisStore(address)
        case _:
            # Not quoted: what is no address of ours may still have a password in it.
            raise BadOption(f"{STORE}: {_kind(scheme, colon)} is no store; use sqlite:PATH or redis://HOST")


def may_advance_schedules() -> bool:
    """Whether this process may add ticks of schedules; it runs them either way."""
    return switch_from(CRON_ENABLED, usual=True)


def _kind(scheme: str, colon: str) -> str:
    return f"'{scheme}:'" if colon and scheme.replace("+", "").isalnum() else "this"


def _sqlite(address: str, rest: str) -> SqliteStore:
    path, _, query = rest.removeprefix("//").partition("?")
    match query:
        case "" | "sync=full":
            return SqliteStore(Path(path))
        case "sync=normal":
            return SqliteStore(Path(path), sync="normal")
        case _:
            raise BadOption(f"{STORE}: {address!r}: after '?' stands sync=full or sync=normal")
