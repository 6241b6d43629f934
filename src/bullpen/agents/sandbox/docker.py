"""Sandboxes that are containers, by Docker's HTTP API on its unix socket. Podman speaks it too; gVisor is a runtime.

The container's program is the warden, at the other end of an attached stream. The image needs Python 3.10 or later.
"""

import asyncio
import json
import os
import struct
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from bullpen.agents.sandbox.base import Level, Sandbox
from bullpen.agents.sandbox.guarded import GuardedSandbox
from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.sandbox.warden.sending import BOOTSTRAP
from bullpen.errors import BadOption, SandboxBroken, SandboxUnavailable

IMAGE = "python:3.12-slim"
_API = "/v1.41"
_SOCKET = "/var/run/docker.sock"
_ANSWER_S = 60.0
_STDOUT = 1
_MISSING, _CONFLICT = 404, 409


class DockerDriver:
    """`runtime` is one that Docker knows by this name, such as `runsc` for gVisor."""

    name = "docker"
    level = Level.CONTAINER

    def __init__(self, *, socket: str | None = None, runtime: str = "") -> None:
        self._api = _Api(socket or _socket_from())
        self._runtime = runtime

    async def create(self, spec: SandboxSpec, *, id: str) -> GuardedSandbox:  # noqa: A002
        if spec.packages:
            raise BadOption("packages: a container has those of its image; make one that has them, and name it")
        name = _container(id)
        await self._api.ask("POST", f"/containers/create?name={name}", self._described(spec), expect=(201,))
        channel = _Attached(self._api, name)
        sandbox = GuardedSandbox(id, self.level, spec, channel)
        try:
            await channel.open()
            await self._api.ask("POST", f"/containers/{name}/start", expect=(204, 304))
            await sandbox.greet()
        except SandboxBroken as error:
            await sandbox.close()
            raise SandboxUnavailable(f"docker: the image has no Python that could be started: {error}") from error
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    def _described(self, spec: SandboxSpec) -> dict[str, Any]:
        limits = spec.limits
        scratch = f"rw,nosuid,nodev,size={limits.disk_bytes},nr_inodes={limits.files},mode=1777"
        binds = [{"Type": "bind", "Source": str(path.resolve()), "Target": f"/inputs/{name}", "ReadOnly": True}
                 for name, path in spec.inputs.items()]  # fmt: skip
        host: dict[str, Any] = {
            "Memory": limits.memory_bytes + 2 * limits.disk_bytes,  # what is written there is memory
            "MemorySwap": limits.memory_bytes + 2 * limits.disk_bytes,
            "NanoCpus": round(limits.cpus * 1e9),
            "PidsLimit": limits.processes + 1,
            "NetworkMode": "bridge" if limits.network else "none",
            "ReadonlyRootfs": True,
            "Tmpfs": {"/workspace": f"{scratch},exec", "/tmp": f"{scratch},exec"},  # noqa: S108
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Mounts": binds,
            "AutoRemove": False,
        }
        if self._runtime:
            host["Runtime"] = self._runtime
        return {
            "Image": spec.image or IMAGE,
            "Entrypoint": ["python3", "-I", "-S", "-c", BOOTSTRAP],
            "Cmd": [],
            "User": "1000:1000",
            "WorkingDir": "/workspace",
            "Env": [],
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": False,
            "Tty": False,
            "Labels": {"bullpen.sandbox": "1"},
            "HostConfig": host,
        }

    def token(self, sandbox: Sandbox) -> dict[str, str | int]:
        return {"id": sandbox.id}

    async def reap(self, token: Mapping[str, str | int]) -> None:
        await self._api.remove(_container(str(token["id"])))

    async def close(self) -> None:
        pass


def _container(sandbox_id: str) -> str:
    return "bullpen-" + quote(sandbox_id, safe="")


def _socket_from() -> str:
    told = os.environ.get("DOCKER_HOST", "")
    if told and not told.startswith("unix://"):
        raise BadOption(f"DOCKER_HOST: only unix:// is spoken, not {told!r}")
    return told.removeprefix("unix://") or _SOCKET


class _Api:
    """Requests on a connection each: they are few."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    async def ask(self, verb: str, path: str, body: object = None, *, expect: tuple[int, ...]) -> bytes:
        try:
            async with asyncio.timeout(_ANSWER_S):
                reader, writer = await self.open(verb, path, body)
                try:
                    status, headers = await read_head(reader)
                    answer = await _read_body(reader, headers)
                finally:
                    writer.close()
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            raise SandboxUnavailable(f"docker: {self._socket} does not answer: {error}") from error
        if status not in expect:
            raise SandboxUnavailable(f"docker: {verb} {path}: {status} {_message(answer)}")
        return answer

    async def open(
        self, verb: str, path: str, body: object = None, more: str = ""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(self._socket, limit=1 << 20)
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{verb} {_API}{path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        head += more or "Connection: close\r\n"
        writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        await writer.drain()
        return reader, writer

    async def remove(self, name: str) -> None:
        """End and remove it; nothing if it is gone, or going."""
        await self.ask("DELETE", f"/containers/{name}?force=1&v=1", expect=(204, _MISSING, _CONFLICT))


class _Attached:
    """The stream to a container's program: what comes is in packets with a head of eight bytes."""

    def __init__(self, api: _Api, name: str) -> None:
        self._api = api
        self._name = name
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._came = bytearray()
        self._removed = False

    async def open(self) -> None:
        query = "stream=1&stdin=1&stdout=1"
        upgrade = "Connection: Upgrade\r\nUpgrade: tcp\r\n"
        try:
            self._streams = await self._api.open("POST", f"/containers/{self._name}/attach?{query}", None, upgrade)
            status, _ = await read_head(self._streams[0])
        except (OSError, EOFError, ValueError) as error:
            raise SandboxUnavailable(f"docker: the container cannot be attached to: {error}") from error
        if status not in (101, 200):
            raise SandboxUnavailable(f"docker: the container cannot be attached to: {status}")

    async def write(self, data: bytes) -> None:
        assert self._streams
        self._streams[1].write(data)
        await self._streams[1].drain()

    async def read_exactly(self, count: int) -> bytes:
        assert self._streams
        while len(self._came) < count:
            kind, length = struct.unpack(">BxxxI", await self._streams[0].readexactly(8))
            data = await self._streams[0].readexactly(length)
            if kind == _STDOUT:
                self._came += data
        data = bytes(self._came[:count])
        del self._came[:count]
        return data

    async def kill(self) -> None:
        if not self._removed:
            await self._api.remove(self._name)
            self._removed = True  # not before: what could not be removed is to be removed by a later call

    async def close(self) -> None:
        if self._streams:
            self._streams[1].close()

    def oom_killed(self) -> bool:
        return False  # the warden sees the memory that is used


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """The status and headers of an answer."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    return int(lines[0].split()[1]), headers


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        return b"".join(parts)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read(1 << 20)


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:200]
