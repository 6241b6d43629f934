"""Which addresses may be called when somebody else wrote them down.

Whoever may name an address could otherwise have us ask what only we can reach: this machine, the
network behind the firewall, a cloud's own servers. What counts is the address that a name leads to,
in whichever way it is written: `127.1`, `2130706433`, `[::ffff:127.0.0.1]` are all this machine.
"""

import ipaddress
import socket
from collections.abc import Sequence

from bullpen.errors import AddressRefused, BadOption
from bullpen.settings import told

ALLOW = "BULLPEN_OUTGOING_ALLOW"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_REFUSED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # behind a provider's own network
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "::/96",  # IPv4 in a form that nobody uses but to hide
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",  # Teredo and its kin: what is inside is somebody else's say
        "2001:db8::/32",
        "2002::/16",
        "5f00::/16",
        "fc00::/7",
        "fec0::/10",
    )
)
"""Beyond what Python calls not global: versions of it differ."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Allowed:
    """Public addresses, and those of these networks."""

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._networks = tuple(networks)

    @classmethod
    def from_environment(cls) -> "Allowed":
        """What `BULLPEN_OUTGOING_ALLOW` names: addresses and networks with commas between them."""
        return cls.parse(told(ALLOW) or "")

    @classmethod
    def parse(cls, text: str) -> "Allowed":
        """BadOption for what is neither an address nor a network."""
        networks = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            try:
                networks.append(ipaddress.ip_network(part))
            except ValueError as error:
                raise BadOption(f"{ALLOW}: {part!r} is no address and no network such as 10.0.0.0/8") from error
        return cls(networks)

    def check(self, host: str, found: Sequence[str]) -> list[Address]:
        """The addresses that a host has, all of which may be called; AddressRefused names the first that may not.

        One bad address spoils the name: whoever mixes them hopes that the other one is taken.
        """
        addresses = [ipaddress.ip_address(text.partition("%")[0]) for text in found]
        for address in addresses:
            if not self.allows(address):
                raise AddressRefused(f"url: {host} is at {address}, which is not called: see {ALLOW}")
        return addresses

    def allows(self, address: Address) -> bool:
        inner = _inner(address)
        named = any(one in network for one in {address, inner} for network in self._networks)
        return named or _is_public(inner)


def literal(host: str) -> str | None:
    """The address that a host itself is, in whichever way it is written; None for a name."""
    try:
        return str(ipaddress.ip_address(host.strip("[]").partition("%")[0]))
    except ValueError:
        pass
    try:
        # The forms of old that name servers are never asked about: 127.1, 0x7f000001, 017700000001.
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeEncodeError):
        return None


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _REFUSED)
    )
