"""Calls over HTTP to addresses that somebody else wrote down; the one place that does so.

- A name is resolved once. All that it leads to must be [allowed](addresses.py), and the connection
  goes to an address that was looked at: a name that leads elsewhere a moment later gains nothing.
- TLS is checked against the name, as ever.
- Redirects are not followed, proxies of the environment are not asked, cookies are not kept, no
  connection is used twice.
- A call ends in time, also if its answer comes byte by byte; of the answer only the beginning is read.
- What goes wrong is told without the path: some addresses are secrets themselves.
"""

import asyncio
import email.utils
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC

import httpx
import msgspec

from bullpen.builtin.addresses import Address, Allowed, literal
from bullpen.errors import AddressRefused, CallFailed

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to addresses."""

_TRIES = 4
"""How many addresses of a host are tried until one takes the connection."""
_MOST_DIGITS = 12
"""Of seconds: more of them say no more than that."""
_PORTS = {"http": 80, "https": 443}


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    """Their names in small letters."""
    body: bytes
    """Its beginning."""
    took_ms: int

    def retry_after_s(self, now_ms: int) -> float | None:
        """For how long its sender wants to be left alone, as `Retry-After` says in seconds or by a date."""
        told = self.headers.get("retry-after", "").strip()
        if told.isascii() and told.isdecimal():
            return float(told[:_MOST_DIGITS])
        try:
            moment = email.utils.parsedate_to_datetime(told)
        except (ValueError, OverflowError):
            return None
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now_ms / 1000)


class Outgoing:
    """Makes calls; cheap to hold, safe to share within an event loop.

    answer = await Outgoing().call("POST", "https://example.com/hook", content=b"{}")
    """

    def __init__(
        self,
        allowed: Allowed | None = None,
        *,
        timeout: float = 10,
        max_answer: int = 16_384,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.allowed = Allowed.from_environment() if allowed is None else allowed
        self._timeout_s = timeout
        # An address that swallows connections leaves time for the next; the whole is timed by `call`.
        self._waits = httpx.Timeout(None, connect=timeout / 2)
        self._max_answer = max_answer
        self._resolve = resolve or ask_the_system
        self._tls = tls

    def check(self, url: str) -> None:
        """AddressRefused for what cannot be called, as far as that shows without asking anybody."""
        parsed = _parsed(url)
        address = literal(parsed.host)
        if address is not None:
            self.allowed.check(parsed.host, [address])

    async def call(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, content: bytes = b""
    ) -> Answer:
        """The answer, whatever its status. AddressRefused, or CallFailed if there is none."""
        parsed = _parsed(url)
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)  # reads files, once
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                addresses = self.allowed.check(parsed.host, await self._found(parsed))
                answer = await self._first_answer(method, parsed, addresses, headers or {}, content)
        except TimeoutError as error:
            raise CallFailed(f"{parsed.host} did not answer within {self._timeout_s:g} s") from error
        return msgspec.structs.replace(answer, took_ms=round((time.monotonic() - begun) * 1000))

    async def _found(self, url: httpx.URL) -> Sequence[str]:
        host = url.raw_host.decode("ascii")
        address = literal(host)
        if address is not None:
            return [address]
        try:
            found = await self._resolve(host, _port(url))
        except (OSError, UnicodeError) as error:
            raise CallFailed(f"{url.host} is not known: {type(error).__name__}") from error
        if not found:
            raise CallFailed(f"{url.host} is not known")
        return found

    async def _first_answer(
        self, method: str, url: httpx.URL, addresses: Sequence[Address], headers: Mapping[str, str], content: bytes
    ) -> Answer:
        """From the first address that takes the connection."""
        failed: Exception | None = None
        for address in list(dict.fromkeys(addresses))[:_TRIES]:
            try:
                return await self._answer(method, url, address, headers, content)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = error  # nothing was sent yet: the next one may be reached
            except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
                raise CallFailed(f"{url.host} gave no answer: {_cause(error)}") from None
        raise CallFailed(f"{url.host} cannot be reached: {_cause(failed)}") from None

    async def _answer(
        self, method: str, url: httpx.URL, address: Address, headers: Mapping[str, str], content: bytes
    ) -> Answer:
        assert self._tls is not None
        # A client for each call keeps neither cookies nor connections: one that was checked for
        # a name would else be used for another at the same address.
        client = httpx.AsyncClient(verify=self._tls, trust_env=False, follow_redirects=False, timeout=self._waits)
        async with client:
            request = client.build_request(
                method,
                url.copy_with(host=str(address)),
                headers={"Accept-Encoding": "identity", **headers, "Host": url.netloc.decode("ascii")},
                content=content,
                extensions={"sni_hostname": url.raw_host.decode("ascii").strip("[]")},
            )
            response = await client.send(request, stream=True)
            try:
                body = b""
                async for part in response.aiter_raw():
                    body += part
                    if len(body) >= self._max_answer:
                        break
            finally:
                await response.aclose()
        return Answer(response.status_code, dict(response.headers), body[: self._max_answer], 0)


def _parsed(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise AddressRefused(f"url: cannot be read: {error}") from error
    if parsed.scheme not in _PORTS or not parsed.host:
        raise AddressRefused("url: an address that begins with https:// or http://")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise AddressRefused("url: its port is none")
    if parsed.userinfo:
        raise AddressRefused("url: has a user or a password in it, which every list would show")
    if any(part.isspace() or not part.isprintable() for part in url):
        raise AddressRefused("url: has a space or a sign that cannot be seen")
    return parsed


def _port(url: httpx.URL) -> int:
    return url.port or _PORTS[url.scheme]


def _cause(error: Exception | None) -> str:
    """In a few words, without the address."""
    return f"{type(error).__name__}: {str(error)[:200]}" if error is not None and str(error) else type(error).__name__


async def ask_the_system(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(place[0]) for *_, place in found]
