"""What a server is told when it starts: by its caller, or by the environment."""

import dataclasses
import ipaddress
from typing import Self

from bullpen.errors import BadOption
from bullpen.settings import switch_from, told, whole_from
from bullpen.telemetry.checks import HealthOptions

HOST = "BULLPEN_SERVER_HOST"
PORT = "BULLPEN_SERVER_PORT"
FIELDS = "BULLPEN_SERVER_FIELDS"
DELIVERS = "BULLPEN_SERVER_DELIVERS"
AUDIT_DAYS = "BULLPEN_AUDIT_DAYS"
JWKS_URL = "BULLPEN_JWKS_URL"
JWT_ISSUER = "BULLPEN_JWT_ISSUER"
JWT_AUDIENCE = "BULLPEN_JWT_AUDIENCE"

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8787
LOOPBACK_NAMES = frozenset({"localhost", LOOPBACK, "::1"})
_MEBIBYTE = 1_048_576
_AUDIT_DAYS = 365
_MAX_PORT = 65_535


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """Whose tokens are good: all three are checked, so that a token for another service opens nothing here."""

    jwks_url: str
    issuer: str
    audience: str

    def __post_init__(self) -> None:
        if not self.jwks_url.startswith(("https://", "http://")):
            raise BadOption("jwks_url: an address that begins with https:// or http://")
        if not self.issuer or not self.audience:
            raise BadOption("issuer: with a jwks_url both issuer and audience must be said")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    host: str = LOOPBACK
    """The address to listen at. Another than loopback is refused until there is a key, a user or a JWKS."""
    port: int = DEFAULT_PORT
    fields: tuple[str, ...] = ()
    """Fields of the jobs' data that lists show and search finds; none unless named."""
    body_limit: int = _MEBIBYTE
    """The largest body of a request, in bytes."""
    bulk_limit: int = 8 * _MEBIBYTE
    """The same where many jobs come at once."""
    attempts: int = 10
    """How many wrong passwords a name has from one address in five minutes; ten times that in all."""
    listener_events: int = 1_000
    """How many events wait for a reader that is slow; with more it is told of a gap."""
    delivers: bool = True
    """Whether it works on the deliveries of webhooks and alerts itself; if not, other workers must."""
    audit_days: int = _AUDIT_DAYS
    """How many days entries of the audit log are kept."""
    jwt: JwtSettings | None = None
    health: HealthOptions | None = None
    """From where on its health tells that something is not well; None: as is usual."""

    def __post_init__(self) -> None:
        for option in ("body_limit", "bulk_limit", "attempts", "listener_events", "audit_days"):
            if getattr(self, option) < 1:
                raise BadOption(f"{option}: a whole number of 1 or more, not {getattr(self, option)}")
        if not 0 <= self.port <= _MAX_PORT:
            raise BadOption(f"port: from 0 to 65,535, not {self.port}")

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine can reach it."""
        return is_loopback(self.host)

    @classmethod
    def from_environment(cls, *, host: str | None = None, port: int | None = None) -> Self:
        """What is given, else what the environment says, else the defaults."""
        told_port = whole_from(PORT, DEFAULT_PORT, 0, _MAX_PORT)
        return cls(
            host=host or told(HOST) or LOOPBACK,
            port=told_port if port is None else port,
            fields=tuple(name for name in (told(FIELDS) or "").split(",") if name),
            delivers=switch_from(DELIVERS, usual=True),
            audit_days=whole_from(AUDIT_DAYS, _AUDIT_DAYS, 1, 99_999),
            jwt=_jwt_from_environment(),
            health=HealthOptions.from_environment(),
        )


def is_loopback(host: str) -> bool:
    """Whether this name or address is of this machine alone."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _jwt_from_environment() -> JwtSettings | None:
    url = told(JWKS_URL)
    if not url:
        return None
    return JwtSettings(jwks_url=url, issuer=told(JWT_ISSUER) or "", audience=told(JWT_AUDIENCE) or "")
