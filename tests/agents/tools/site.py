"""A small web site on loopback, which remembers what it was asked."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Page:
    body: bytes
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Site:
    url: str
    pages: dict[str, Page] = field(default_factory=dict)
    """By path."""
    asked: list[str] = field(default_factory=list)
    """Paths with queries, in order."""
    hosts: list[str] = field(default_factory=list)
    """The Host of each request."""

    def put(self, path: str, body: str, **rest: object) -> str:
        """The address of a page that is there from now on."""
        self.pages[path] = Page(body.encode(), **rest)  # type: ignore[arg-type]  # as the page takes them
        return self.url + path

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = head.split(" ", 2)[1]
            self.asked.append(target)
            self.hosts += [line[6:] for line in head.split("\r\n") if line.lower().startswith("host: ")]
            page = self.pages.get(urlsplit(target).path, Page(b"nothing here", 404))
            headers = {"Content-Type": page.kind, "Content-Length": str(len(page.body)), **page.headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            # It claims to keep the connection, and does not.
            writer.write(f"HTTP/1.1 {page.status} Said\r\n{lines}\r\n".encode() + page.body)
            await writer.drain()
        except (OSError, EOFError):
            pass  # whoever asked went away
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def site_at(host: str) -> AsyncIterator[Site]:
    site = Site("")
    server = await asyncio.start_server(site.serve, host, 0)
    site.url = f"http://{host}:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()
