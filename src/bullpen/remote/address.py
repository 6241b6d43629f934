"""Where the server is, and the token by which it knows a worker: never shown."""

import ipaddress
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bullpen.errors import BadOption
from bullpen.settings import told

TOKEN = "BULLPEN_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE = "BULLPEN_TOKEN_FILE"  # noqa: S105
SERVER = "BULLPEN_SERVER"


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    token: str
    ca: str | None = None
    """A file with the certificates to trust, in place of the system's."""

    def __repr__(self) -> str:
        return f"ServerAddress({self.url!r})"

    def __str__(self) -> str:
        return self.url

    def tls(self) -> ssl.SSLContext | bool:
        """Certificates are checked, always."""
        if self.ca is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise BadOption(f"ca: {self.ca} cannot be read as certificates: {error}") from error


def server_address(
    url: str | None = None,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    ca: str | Path | None = None,
    allow_http: bool = False,
) -> ServerAddress:
    """The server at this address, or the one that the environment names; BadOption says what is missing."""
    url = (url or told(SERVER) or "").rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadOption(f"server: an address such as https://bullpen.example.com, by argument or {SERVER}")
    if parts.username or parts.password:
        raise BadOption("server: no password belongs into the address; a token is given apart")
    if parts.scheme == "http" and not allow_http and not _is_this_machine(parts.hostname):
        raise BadOption("server: over plain http anyone on the way can read the token; use https, or allow it")
    return ServerAddress(url=url, token=token or _token(token_file), ca=None if ca is None else str(ca))


def _token(file: str | Path | None) -> str:
    """From the file that was named, else from the settings."""
    if file is None:
        token, whence = (told(TOKEN) or "").strip(), TOKEN
        if not token:
            raise BadOption(f"token: give a file with it, or set {TOKEN} or {TOKEN_FILE}")
    else:
        try:
            token, whence = Path(file).read_text().strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            raise BadOption(f"token: {file} cannot be read: {error}") from error
    if not token or not token.isascii() or not token.isprintable():
        raise BadOption(f"token: {whence} holds none")
    return token


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
