"""Where a Redis server is, read from an address.

    redis://[user:password@]host[:port][/db]           rediss:// for TLS
    unix://[user:password@]/path/to/socket[?db=0]
    redis+sentinel://[user:password@]host,host/service[/db]
    redis+cluster://[user:password@]host,host

A message about a wrong address names the part and never quotes it: a password that is not
escaped makes any part look like any other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from bullpen.errors import BadOption

DEFAULT_PREFIX = "bull"
"""BullMQ's."""
_PORT, _SENTINEL_PORT = 6379, 26379
_HASH_TAG = re.compile(r"\{[^}]+\}")
_TLS_OPTIONS = ("ca", "cert", "key")
_SENTINEL_OPTIONS = ("sentinel_user", "sentinel_password")


class Kind(StrEnum):
    SERVER = "server"
    SOCKET = "socket"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


class Node(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Login:
    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """Files; without an authority those of the system are trusted."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    kind: Kind
    nodes: tuple[Node, ...] = ()
    """The server, or the sentinels, or those nodes of the cluster that are asked first."""
    socket: str = ""
    login: Login = Login()
    sentinel_login: Login = Login()
    tls: Tls | None = None
    db: int = 0
    service: str = ""
    prefix: str | None = None

    def __str__(self) -> str:
        """Fit to be shown."""
        if self.kind == Kind.SOCKET:
            return f"unix://{self.socket}"
        scheme = ("rediss" if self.tls else "redis") + ("" if self.kind == Kind.SERVER else f"+{self.kind}")
        return f"{scheme}://{','.join(map(str, self.nodes))}" + (f"/{self.service}" if self.service else "")

    def choose_prefix(self, asked: str | None = None) -> str:
        """What all keys begin with; on a cluster it has to keep them together."""
        prefix = asked if asked is not None else self.prefix
        if self.kind != Kind.CLUSTER:
            return DEFAULT_PREFIX if prefix is None else prefix
        if prefix is None:
            return f"{{{DEFAULT_PREFIX}}}"
        if not _HASH_TAG.search(prefix):
            raise BadOption(
                f"prefix: on a cluster all keys must share one hash tag; write '{{{prefix}}}' instead of {prefix!r}"
            )
        return prefix


_KINDS = {
    "redis": Kind.SERVER,
    "unix": Kind.SOCKET,
    "redis+sentinel": Kind.SENTINEL,
    "redis+cluster": Kind.CLUSTER,
}
SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")


def parse_address(text: str) -> Address:
    """The address in the text, or BadOption that names the part which is wrong."""
    scheme, slashes, rest = text.partition("://")
    if not slashes or scheme not in SCHEMES:
        raise _wrong(f"it begins with one of {', '.join(f'{one}://' for one in SCHEMES)}")
    before_query, _, query = rest.partition("?")
    authority, slash, path = before_query.partition("/")
    if "@" in path or "@" in query.partition("=")[0]:
        raise _wrong("in a user or password '/', '?', '#' and '@' are written as %2F, %3F, %23 and %40")
    login, _, hosts = authority.rpartition("@")
    kind = _KINDS[scheme.replace("rediss", "redis")]
    options = _read_options(query, kind, has_tls=scheme.startswith("rediss"))
    service, db = _read_path(kind, slash + path, options)
    return Address(
        kind=kind,
        nodes=_read_nodes(kind, hosts),
        socket=unquote(slash + path) if kind == Kind.SOCKET else "",
        login=_read_login(login),
        sentinel_login=Login(options.get("sentinel_user"), options.get("sentinel_password")),
        tls=_read_tls(options) if scheme.startswith("rediss") else None,
        db=db,
        service=service,
        prefix=options.get("prefix"),
    )


def _read_login(text: str) -> Login:
    username, _, password = text.partition(":")
    return Login(unquote(username) or None, unquote(password) or None)


def _read_nodes(kind: Kind, text: str) -> tuple[Node, ...]:
    if kind == Kind.SOCKET:
        if text:
            raise _wrong("the path of a socket begins with a third slash: unix:///run/redis.sock")
        return ()
    hosts = text.split(",")
    if kind == Kind.SERVER and len(hosts) > 1:
        raise _wrong("one host; several are for redis+sentinel:// and redis+cluster://")
    default_port = _SENTINEL_PORT if kind == Kind.SENTINEL else _PORT
    return tuple(_read_node(host, default_port) for host in hosts)


def _read_node(text: str, default_port: int) -> Node:
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::(.*))?", text)
    if match is None:
        raise _wrong("a host is missing, or an IPv6 address stands without [ ]")
    port = default_port if match[3] is None else _whole(match[3], "port", 1, 65_535)
    return Node(unquote(match[1] or match[2]), port)


def _read_path(kind: Kind, path: str, options: Mapping[str, str]) -> tuple[str, int]:
    """The service and the database."""
    first, _, second = path.removeprefix("/").partition("/")
    match kind:
        case Kind.SOCKET:
            if not first and not second:
                raise _wrong("the path of the socket is missing: unix:///run/redis.sock")
            return "", _whole(options.get("db", "0"), "database")
        case Kind.CLUSTER:
            if first.strip("0") or second:
                raise _wrong("a cluster has no databases: nothing stands after the hosts")
            return "", 0
        case Kind.SENTINEL:
            if not first:
                raise _wrong("the name of the service is missing: redis+sentinel://HOSTS/SERVICE")
            return unquote(first), _whole(second or "0", "database")
        case Kind.SERVER:
            if second:
                raise _wrong("after the host stands one database")
            return "", _whole(first or "0", "database")


def _read_options(query: str, kind: Kind, *, has_tls: bool) -> dict[str, str]:
    known = ["prefix"]
    known += _TLS_OPTIONS if has_tls else ()
    known += _SENTINEL_OPTIONS if kind == Kind.SENTINEL else ()
    known += ["db"] if kind == Kind.SOCKET else ()
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise _wrong(f"after '?' it knows {', '.join(known)}, and not {name!r}")
        if name in options:
            raise _wrong(f"{name} is given twice")
        if not value:
            raise _wrong(f"{name} is empty")
        options[name] = value
    return options


def _read_tls(options: Mapping[str, str]) -> Tls:
    for name in _TLS_OPTIONS:
        if name in options and not Path(options[name]).is_file():
            raise _wrong(f"{name} is not a file that can be read")
    if "key" in options and "cert" not in options:
        raise _wrong("a key goes with a cert")
    return Tls(*(options.get(name) for name in _TLS_OPTIONS))


def _whole(text: str, part: str, low: int = 0, high: int = 2**31 - 1) -> int:
    if not text.isascii() or not text.isdecimal() or not low <= int(text) <= high:
        raise _wrong(f"the {part} is not a whole number from {low} to {high}")
    return int(text)


def _wrong(what: str) -> BadOption:
    return BadOption(f"address of the Redis server: {what}")
