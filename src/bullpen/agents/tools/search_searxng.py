"""Search by a SearXNG server, which asks many engines: `GET /search?q=…&format=json`.

Its address is the operator's own word, as that of a model's provider is, so it may be a private one. The server must
allow the form: `search: formats: [html, json]` in its settings.
"""

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit

import msgspec

from bullpen.agents.tools.searching import Found
from bullpen.builtin.addresses import Allowed
from bullpen.builtin.outgoing import Outgoing
from bullpen.errors import AddressRefused, BadOption, CallFailed, ToolError

_ANY = Allowed([ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")])
_MOST_ANSWER = 4_000_000
_SNIPPET = 500


class _Result(msgspec.Struct):
    url: str
    title: str = ""
    content: str | None = ""


class _Answer(msgspec.Struct):
    results: list[_Result]


_decode = msgspec.json.Decoder(_Answer).decode


class SearxngSearch:
    """A `SearchBackend`. Cheap to hold: no connection is kept."""

    def __init__(self, url: str, *, timeout_s: float = 15.0, categories: str = "", language: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise BadOption(f"url: the address of a SearXNG server, such as https://search.example.com, not {url!r}")
        self._base = url.rstrip("/")
        self._fixed = {name: value for name, value in (("categories", categories), ("language", language)) if value}
        self._outgoing = Outgoing(_ANY, timeout=timeout_s, max_answer=_MOST_ANSWER)

    async def search(self, query: str, *, limit: int) -> Sequence[Found]:
        asked = urlencode({"q": query, "format": "json", **self._fixed})
        try:
            answer = await self._outgoing.call("GET", f"{self._base}/search?{asked}")
        except (CallFailed, AddressRefused) as error:
            raise ToolError(f"the search server: {error}") from None
        match answer.status:
            case 200:
                return _found(answer.body)[:limit]
            case 403:
                raise ToolError("the search server refuses to answer as JSON: allow it under search.formats there")
            case 429:
                raise ToolError("the search server is asked too often; try again later")
            case status:
                raise ToolError(f"the search server answered {status}")

    async def close(self) -> None:
        pass


def _found(body: bytes) -> list[Found]:
    try:
        results = _decode(body).results
    except msgspec.DecodeError as error:
        raise ToolError(f"the search server sent what is no answer: {error}") from None
    return [
        Found(title=one.title or one.url, url=one.url, snippet=(one.content or "")[:_SNIPPET])
        for one in results
        if one.url
    ]
