"""A client for the endpoints: what a probe or a scrape sees."""

import urllib.error
import urllib.request
from typing import Any, NamedTuple

import msgspec


class Answered(NamedTuple):
    status: int
    text: str
    content_type: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.text)


def get(url: str, method: str = "GET") -> Answered:
    """Blocks: call it in a thread."""
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return Answered(answer.status, answer.read().decode(), answer.headers["Content-Type"])
    except urllib.error.HTTPError as error:
        with error:
            return Answered(error.code, error.read().decode(), error.headers["Content-Type"])
