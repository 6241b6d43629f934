"""Local servers that speak what Docker and E2B speak. What they run is real, and runs in a bubblewrap."""

import asyncio
import base64
import contextlib
import json
import re
import shutil
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any

from bullpen.agents.sandbox import Limits, SandboxSpec
from bullpen.agents.sandbox.bubblewrap.arguments import namespaces, scratch, system

_SPEC = SandboxSpec(limits=Limits(disk_mb=16))
_JSON = "Content-Type: application/json\r\n"


async def start_boxed(command: Sequence[str], *, first: bool) -> asyncio.subprocess.Process:
    """Run a command behind walls; `first` as process 1, as a container does."""
    program = shutil.which("bwrap")
    assert program
    words = [word for word in namespaces(network=False) if first or word != "--as-pid-1"]
    arguments = [
        *words,
        *system("/usr/bin/python3", network=False),
        *scratch(_SPEC),
        "--setenv",
        "PATH",
        "/usr/bin:/bin",
    ]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(program, *arguments, "--", *command, stdin=pipe, stdout=pipe)


class _Server:
    """Reads a request and hands it to `answer`, on a connection each."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.refuses_to_end = 0
        """So many times."""
        self._handling: set[asyncio.Task[Any]] = set()
        self._ended: list[asyncio.subprocess.Process] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._handling.add(task)
        try:
            verb, path, _ = (await reader.readuntil(b"\n")).decode().split(" ", 2)
            headers = await _headers(reader)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.headers.append(headers)
            await self.answer(verb, path, body, reader, writer)
        except* (OSError, EOFError, asyncio.CancelledError):
            pass  # the other side is gone, or the test is over
        finally:
            writer.close()
            self._handling.discard(task)

    async def answer(
        self, verb: str, path: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        raise NotImplementedError

    def _refuses(self, writer: asyncio.StreamWriter) -> bool:
        if self.refuses_to_end:
            self.refuses_to_end -= 1
            writer.write(_reply(500, {"message": "not now"}))
            return True
        return False

    def end(self, name: str) -> bool:
        process = self.processes.pop(name, None)
        if process is None:
            return False
        self._ended.append(process)
        if process.returncode is None:
            process.kill()
        return True

    async def close(self) -> None:
        for name in list(self.processes):
            self.end(name)
        for task in list(self._handling):
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
        for process in self._ended:
            await process.wait()
            process._transport.close()  # type: ignore[attr-defined]  # its pipes close a moment later by themselves


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    lines = []
    while (line := (await reader.readline()).decode("latin-1").strip()) != "":
        lines.append(line)
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _reply(status: int, value: object = None) -> bytes:
    text = b"" if value is None else json.dumps(value).encode()
    return f"HTTP/1.1 {status} X\r\n{_JSON}Connection: close\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text


class DockerServer(_Server):
    """Create, attach, start and remove, as Docker's API has them."""

    def __init__(self) -> None:
        super().__init__()
        self.containers: dict[str, dict[str, Any]] = {}
        self._started: dict[str, asyncio.Event] = {}

    async def answer(
        self, verb: str, path: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        path = path.removeprefix("/v1.41")
        self.asked.append((verb, path, json.loads(body) if body else None))
        if match := re.fullmatch(r"/containers/create\?name=(\S+)", path):
            described = json.loads(body)
            if described["Image"] == "missing":
                writer.write(_reply(404, {"message": "No such image: missing"}))
                return
            self.containers[match[1]] = described
            self._started[match[1]] = asyncio.Event()
            writer.write(_reply(201, {"Id": match[1]}))
        elif match := re.fullmatch(r"/containers/([^/]+)/attach\?.*", path):
            writer.write(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
            await self._started[match[1]].wait()
            await self._pump(self.processes[match[1]], reader, writer)
        elif match := re.fullmatch(r"/containers/([^/]+)/start", path):
            entrypoint = self.containers[match[1]]["Entrypoint"]
            self.processes[match[1]] = await start_boxed(entrypoint, first=True)
            self._started[match[1]].set()
            writer.write(_reply(204))
        elif match := re.fullmatch(r"/containers/([^/?]+)\?force=1&v=1", path):
            if self._refuses(writer):
                return
            self.end(match[1])
            there = self.containers.pop(match[1], None) is not None
            writer.write(_reply(204) if there else _reply(404, {"message": "No such container"}))

    async def _pump(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        assert process.stdin
        assert process.stdout
        stdin, stdout = process.stdin, process.stdout

        async def feed() -> None:
            with contextlib.suppress(OSError):
                while data := await reader.read(1000):
                    stdin.write(data)
                    await stdin.drain()

        async with asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(feed())
            while data := await stdout.read(1000):  # packets that split what belongs together
                writer.write(struct.pack(">BxxxI", 2, 5) + b"noise" + struct.pack(">BxxxI", 1, len(data)) + data)
            feeding.cancel()


class E2BServer(_Server):
    """Sandboxes, and processes in them, as E2B's API and its daemon have them."""

    async def answer(
        self, verb: str, path: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self.headers[-1].get("x-api-key") == "wrong":
            writer.write(_reply(401, {"message": "Invalid API key"}))
        elif (verb, path) == ("POST", "/sandboxes"):
            self.asked.append((verb, path, json.loads(body)))
            answer = {"sandboxID": "vm1", "envdAccessToken": "inner", "domain": "e2b.app"}
            writer.write(_reply(201, answer))
        elif path == "/sandboxes/vm1/timeout":
            self.asked.append((verb, path, json.loads(body)))
            writer.write(_reply(204))
        elif path == "/vm1/process.Process/Start":
            await self._start(json.loads(body[5:]), writer)
        elif path == "/vm1/process.Process/SendInput":
            process = self.processes["vm1"]
            assert process.stdin
            process.stdin.write(base64.b64decode(json.loads(body)["input"]["stdin"]))
            await process.stdin.drain()
            writer.write(_reply(200, {}))
        elif verb == "DELETE":
            self.asked.append((verb, path, None))
            if self._refuses(writer):
                return
            writer.write(_reply(204) if self.end(path.rpartition("/")[2]) else _reply(404, {"message": "not found"}))

    async def _start(self, order: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        process = await start_boxed([order["process"]["cmd"], *order["process"]["args"]], first=False)
        self.processes["vm1"] = process
        assert process.stdout
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/connect+json\r\n\r\n")
        _message(writer, {"event": {"start": {"pid": process.pid}}})
        _message(writer, {"event": {"keepalive": {}}})
        while data := await process.stdout.read(1000):
            _message(writer, {"event": {"data": {"stdout": base64.b64encode(data).decode()}}})
        _message(writer, {"event": {"end": {"exited": True}}})
        _message(writer, {}, flags=2)
        writer.write(b"0\r\n\r\n")


def _message(writer: asyncio.StreamWriter, value: object, flags: int = 0) -> None:
    text = json.dumps(value).encode()
    frame = struct.pack(">BI", flags, len(text)) + text
    for part in (frame[:3], frame[3:]):  # a frame may come in pieces
        writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")


@contextlib.asynccontextmanager
async def serving_docker(path: str) -> AsyncIterator[DockerServer]:
    docker = DockerServer()
    server = await asyncio.start_unix_server(docker.handle, path)
    async with server:
        yield docker
        await docker.close()


@contextlib.asynccontextmanager
async def serving_e2b() -> AsyncIterator[tuple[E2BServer, str]]:
    e2b = E2BServer()
    server = await asyncio.start_server(e2b.handle, "127.0.0.1", 0)
    async with server:
        yield e2b, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await e2b.close()
