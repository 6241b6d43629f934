"""Server-sent events over HTTP, until the reader leaves or the server stops."""

import contextlib
from collections.abc import AsyncGenerator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bullpen.server.streams.sending import send_until_left

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

BEAT = b": beat\nevent: beat\ndata: {}\n\n"
"""An event too: browsers keep comments from the page, and it is to notice a connection that has died in silence."""


class EventStream(Response):
    """Sends what comes; closes where it comes from when the reader has left, at once."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes, None], status_code: int = 200) -> None:
        super().__init__(status_code=status_code, headers=_HEADERS)
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        has_begun = False

        async def send_all() -> None:
            nonlocal has_begun
            async with contextlib.aclosing(self._chunks) as chunks:
                # Not sooner than there is something to say: a stream that is open is taken to be heard.
                chunk = await anext(chunks, b"")
                has_begun = True
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})

        await send_until_left(receive, send_all())
        with contextlib.suppress(OSError):  # the reader may have left
            if not has_begun:
                await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
