"""A server that says what it is told to: for versions and states that cannot be had."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def impostor(info: str) -> AsyncIterator[str]:
    """Answers INFO with this, and knows no other command; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                count = int((await reader.readuntil(b"\r\n"))[1:])
                words = []
                for _ in range(count):
                    size = int((await reader.readuntil(b"\r\n"))[1:])
                    words.append((await reader.readexactly(size + 2))[:-2].upper())
                writer.write(_answer(words, info))
                await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()


def _answer(words: list[bytes], info: str) -> bytes:
    match words[0]:
        case b"INFO":
            return f"${len(info)}\r\n{info}\r\n".encode()
        case b"HELLO":
            return b"%1\r\n$5\r\nproto\r\n:3\r\n"
        case _:
            return b"-ERR unknown command\r\n"
