"""The server that mail goes out by, and whom it may go to."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal, cast

from bullpen.agents.llm.endpoint import is_loopback
from bullpen.errors import BadOption, ToolError
from bullpen.settings import Settings

_HOST, _PORT = "BULLPEN_SMTP_HOST", "BULLPEN_SMTP_PORT"
_USER, _PASSWORD = "BULLPEN_SMTP_USER", "BULLPEN_SMTP_PASSWORD"
_TLS, _FROM, _TO = "BULLPEN_SMTP_TLS", "BULLPEN_MAIL_FROM", "BULLPEN_MAIL_TO"
_PORTS = {"tls": 465, "starttls": 587, "none": 25}
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*\Z")
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")

Tls = Literal["starttls", "tls", "none"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SmtpSettings:
    """BadOption names what does not fit."""

    host: str
    sender: str
    """The address in From."""
    domains: tuple[str, ...]
    """Whom mail may go to: `example.com`, `*.example.com` for what is under it, or `*` for anybody."""
    port: int | None = None
    """465 with `tls`, 587 with `starttls`, 25 with `none`."""
    tls: Tls = "starttls"
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    timeout_s: float = 30.0
    """For the whole of a mail."""

    def __post_init__(self) -> None:
        if self.tls not in _PORTS:
            raise BadOption(f"tls: starttls, tls or none, not {self.tls!r}")
        if not self.host or any(sign.isspace() for sign in self.host):
            raise BadOption("host: the name of a mail server")
        if not 0 < self.at_port < 65_536:
            raise BadOption(f"port: from 1 to 65535, not {self.port}")
        if bool(self.user) != bool(self.password):
            raise BadOption("password: goes with a user, and a user with a password")
        if self.password and self.tls == "none" and not is_loopback(self.host):
            raise BadOption("tls: none would show the password to others")
        if self.timeout_s <= 0:
            raise BadOption(f"timeout_s: a number of seconds above 0, not {self.timeout_s!r}")
        try:
            address_of(self.sender, "sender")
        except ToolError as error:
            raise BadOption(str(error)) from None
        for domain in self.domains:
            if domain != "*" and not _DOMAIN.match(_ascii(domain.removeprefix("*."))):
                raise BadOption(f"domains: {domain!r} is no domain")

    @property
    def at_port(self) -> int:
        return _PORTS[self.tls] if self.port is None else self.port

    def recipient(self, text: str, field: str) -> str:
        """The address, if mail may go there; else ToolError, which names the field."""
        address = address_of(text, field)
        domain = address.rpartition("@")[2]
        for allowed in self.domains:
            name = _ascii(allowed)
            if name in {"*", domain} or (name.startswith("*.") and domain.endswith(name[1:])):
                return address
        raise ToolError(f"{field}: mail to {domain} is not allowed here; allowed: {', '.join(self.domains) or 'none'}")


def smtp_from(environment: Mapping[str, str] | None = None) -> SmtpSettings | None:
    """As `BULLPEN_SMTP_HOST` and its kin say; None where it is not set. BadOption names the variable."""
    found = Settings() if environment is None else environment
    host = found.get(_HOST, "").strip()
    if not host:
        return None
    port = found.get(_PORT, "").strip()
    if port and not port.isdecimal():
        raise BadOption(f"{_PORT}: a whole number, not {port!r}")
    try:
        return SmtpSettings(
            host=host,
            port=int(port) if port else None,
            tls=cast("Tls", found.get(_TLS, "").strip() or "starttls"),
            user=found.get(_USER, "").strip(),
            password=found.get(_PASSWORD, ""),
            sender=found.get(_FROM, "").strip(),
            domains=tuple(filter(None, (part.strip() for part in found.get(_TO, "").split(",")))),
        )
    except BadOption as error:
        raise BadOption(f"{_HOST} and its kin: {error}") from None


def address_of(text: str, field: str) -> str:
    """`name@domain` and nothing around it, so that nothing else can be slipped into a header."""
    local, at, domain = text.rpartition("@")
    domain = _ascii(domain)
    if not at or len(text) > 254 or len(local) > 64 or not _LOCAL.match(local) or not _DOMAIN.match(domain):
        raise ToolError(f"{field}: {text[:100]!r} is no mail address such as name@example.com")
    return f"{local}@{domain}"


def _ascii(domain: str) -> str:
    """As name servers know it; what cannot be is left, and matches nothing."""
    try:
        return domain.lower().encode("idna").decode("ascii") if not domain.isascii() else domain.lower()
    except UnicodeError:
        return "?"
