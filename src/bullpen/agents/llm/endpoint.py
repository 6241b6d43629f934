"""Where a provider is, and how long it may take."""

import dataclasses
import ipaddress
import math
from collections.abc import Mapping
from urllib.parse import urlsplit

from bullpen.errors import BadOption

_TIMES = ("connect_s", "silence_s", "whole_s")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a provider's API, with the key that opens it."""

    base_url: str
    """Up to the part that all calls share, such as `https://api.openai.com/v1`."""
    key: str = dataclasses.field(default="", repr=False)
    """None for most local servers."""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    """More of them, for gateways; they may have secrets too."""
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Put after each address, such as Azure's `api-version`."""
    connect_s: float = 10.0
    silence_s: float = 90.0
    """How long nothing may come, before an answer begins and within it."""
    whole_s: float = 600.0
    """How long a call may take in all."""
    proxy: str | None = dataclasses.field(default=None, repr=False)
    """None is no proxy, whatever the environment says."""
    allow_http: bool = False
    """Let a key travel without encryption to another machine."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadOption("base_url: an address that begins with https:// or http://")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise BadOption("base_url: without a user, a password, '?' or '#'; use key, headers and query")
        if parts.scheme == "http" and self.key and not self.allow_http and not is_loopback(parts.hostname):
            raise BadOption("base_url: begins with http://, which would show the key to others; allow_http lets it")
        if not (self.key.isascii() and self.key.isprintable()) or self.key != self.key.strip():
            raise BadOption("key: has characters that no header can carry; is there a line end in it?")
        for name in _TIMES:
            seconds = getattr(self, name)
            if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds <= 0:
                raise BadOption(f"{name}: a number of seconds above 0, not {seconds!r}")

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"

    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        password = urlsplit(self.proxy).password if self.proxy else None
        return tuple(text for text in (self.key, *self.headers.values(), password) if text and len(text) >= 6)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
