"""Sandboxes at E2B, each a virtual machine of its own, by its HTTP API (extra `remote`, for httpx).

The warden is a process there: its output comes as a stream of messages, its input goes as requests.
"""

import asyncio
import base64
import json
import logging
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any

from bullpen.agents.sandbox.base import Level, Sandbox
from bullpen.agents.sandbox.guarded import GuardedSandbox
from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.sandbox.warden.sending import BOOTSTRAP
from bullpen.errors import BadOption, SandboxBroken, SandboxUnavailable
from bullpen.settings import told

_LOG = logging.getLogger("bullpen.agents.sandbox")

TEMPLATE = "base"
_API = "https://api.e2b.app"
_PORT = 49983
_LIFE_S = 3600
"""After which the service ends it, should nobody else. As long as it is had here it gets as much again."""
_EXTENDED_EVERY_S = 600.0
_MOST_MESSAGE = 16 << 20
_END = 2
_OWN = "[ -w /workspace ] || { sudo mkdir -p /workspace && sudo chown $(id -u) /workspace; }"
_SETUP = f"{_OWN}; cd /workspace && exec python3 -I -S -c"


class E2BDriver:
    """`api` and `envd` are other addresses of the same protocol; `{id}` in the latter is the sandbox's."""

    name = "e2b"
    level = Level.MICROVM

    def __init__(self, *, key: str | None = None, api: str = _API, envd: str = "") -> None:
        import httpx

        key = key or told("E2B_API_KEY") or ""
        if not key:
            raise BadOption("E2B_API_KEY: e2b needs a key, and none is set")
        self._client = httpx.AsyncClient(timeout=60.0)
        self._headers = {"X-API-Key": key}
        self._api = api
        self._envd = envd

    async def create(self, spec: SandboxSpec, *, id: str) -> GuardedSandbox:  # noqa: A002
        if spec.packages:
            raise BadOption("packages: a sandbox at e2b has those of its template; make one that has them, and name it")
        if spec.inputs:
            raise BadOption("inputs: they cannot be shown to a sandbox at e2b; write them into its workspace")
        order = {
            "templateID": spec.image or TEMPLATE,
            "timeout": _LIFE_S,
            "secure": True,
            "allow_internet_access": spec.limits.network,
            "metadata": {"bullpen": id},
        }
        made = await self._ask("POST", "/sandboxes", order)
        try:
            remote, token = str(made["sandboxID"]), str(made.get("envdAccessToken") or "")
            base = (
                self._envd.format(id=remote)
                if self._envd
                else f"https://{_PORT}-{remote}.{made.get('domain') or 'e2b.app'}"
            )
        except (KeyError, TypeError) as error:
            raise SandboxUnavailable("e2b: the answer names no sandbox") from error
        channel = _Process(self, remote, base, token)
        sandbox = GuardedSandbox(id, self.level, spec, channel)
        try:
            await channel.open()
            await sandbox.greet()
        except SandboxBroken as error:
            await sandbox.close()
            raise SandboxUnavailable(f"e2b: the template has no Python that could be started: {error}") from error
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    def token(self, sandbox: Sandbox) -> dict[str, str | int]:
        assert isinstance(sandbox, GuardedSandbox)
        assert isinstance(sandbox.channel, _Process)
        return {"remote": sandbox.channel.remote}

    async def reap(self, token: Mapping[str, str | int]) -> None:
        if "remote" in token:
            await self.end(str(token["remote"]))

    async def end(self, remote: str) -> None:
        """End it; nothing if it is gone."""
        await self._ask("DELETE", f"/sandboxes/{remote}", missing_ok=True)

    async def extend(self, remote: str) -> None:
        """It is not ended by the service for as long again as it is when it is made."""
        await self._ask("POST", f"/sandboxes/{remote}/timeout", {"timeout": _LIFE_S})

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(self, verb: str, path: str, body: object = None, *, missing_ok: bool = False) -> Any:
        return await self.request(verb, self._api + path, body, self._headers, missing_ok=missing_ok)

    async def request(
        self, verb: str, url: str, body: object, headers: Mapping[str, str], *, missing_ok: bool = False
    ) -> Any:
        """Ask, and read the answer; whatever goes wrong is `SandboxUnavailable`."""
        import httpx

        try:
            answer = await self._client.request(verb, url, json=body, headers=dict(headers))
        except httpx.HTTPError as error:
            raise SandboxUnavailable(f"e2b: no answer: {error or type(error).__name__}") from error
        if answer.is_success or (missing_ok and answer.status_code == 404):
            return answer.json() if answer.is_success and answer.content else {}
        raise SandboxUnavailable(f"e2b: {answer.status_code} {answer.text[:200]}")

    async def stream(self, url: str, body: object, headers: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
        """The messages of a stream, as the Connect protocol frames them, until its end."""
        text = json.dumps(body).encode()
        framed = struct.pack(">BI", 0, len(text)) + text
        kind = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
        came = bytearray()
        async with self._client.stream(
            "POST", url, content=framed, headers={**headers, **kind}, timeout=None
        ) as answer:
            if not answer.is_success:
                raise SandboxUnavailable(f"e2b: {answer.status_code} from the sandbox")
            async for data in answer.aiter_bytes():
                came += data
                while len(came) >= 5:
                    flags, length = struct.unpack(">BI", came[:5])
                    if length > _MOST_MESSAGE:
                        raise SandboxBroken("e2b: a message is too long")
                    if len(came) < 5 + length:
                        break
                    message = json.loads(came[5 : 5 + length])
                    del came[: 5 + length]
                    if flags & _END:
                        return
                    yield message


class _Process:
    """A process in a sandbox of the service."""

    def __init__(self, driver: E2BDriver, remote: str, base: str, token: str) -> None:
        self.remote = remote
        self._driver = driver
        self._base = base
        user = base64.b64encode(b"user:").decode()
        self._headers = {"Authorization": f"Basic {user}", **({"X-Access-Token": token} if token else {})}
        self._came = asyncio.StreamReader(limit=1 << 22)
        self._pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._listening: asyncio.Task[None] | None = None
        self._life: asyncio.Task[None] | None = None
        self._ended = False

    async def open(self) -> None:
        # Owned by this channel, and ended by `close`.
        self._listening = asyncio.create_task(self._listen(), name=f"e2b {self.remote}")
        self._life = asyncio.create_task(self._extend_life(), name=f"life of e2b {self.remote}")
        async with asyncio.timeout(60):
            await self._pid

    async def _extend_life(self) -> None:
        while True:
            await asyncio.sleep(_EXTENDED_EVERY_S)
            try:
                await self._driver.extend(self.remote)
            except SandboxUnavailable as error:
                _LOG.warning("the life of sandbox %s at e2b could not be extended: %s", self.remote, error)

    async def _listen(self) -> None:
        import httpx

        command = {"cmd": "/bin/sh", "args": ["-c", f'{_SETUP} "$0"', BOOTSTRAP], "envs": {}, "cwd": "/"}
        failure: Exception = SandboxBroken("the sandbox ended")
        try:
            url = f"{self._base}/process.Process/Start"
            async for message in self._driver.stream(url, {"process": command, "stdin": True}, self._headers):
                event = message.get("event", {})
                if "start" in event and not self._pid.done():
                    self._pid.set_result(int(event["start"]["pid"]))
                elif "stdout" in event.get("data", {}):
                    self._came.feed_data(base64.b64decode(event["data"]["stdout"]))
                elif "end" in event:
                    break
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError, SandboxUnavailable) as error:
            failure = SandboxUnavailable(f"e2b: the sandbox cannot be listened to: {error or type(error).__name__}")
        finally:
            self._came.feed_eof()
            if not self._pid.done():
                self._pid.set_exception(failure)

    async def write(self, data: bytes) -> None:
        pid = await self._pid
        body = {"process": {"pid": pid}, "input": {"stdin": base64.b64encode(data).decode()}}
        try:
            await self._driver.request("POST", f"{self._base}/process.Process/SendInput", body, self._headers)
        except SandboxUnavailable as error:
            raise SandboxBroken(str(error)) from error

    async def read_exactly(self, count: int) -> bytes:
        return await self._came.readexactly(count)

    async def kill(self) -> None:
        # First: one that cannot be ended now is not to be had for longer, and one that is gone not to be asked for.
        await _cancel(self._life)
        if not self._ended:
            await self._driver.end(self.remote)
            self._ended = True  # not before: what could not be ended is to be ended by a later call

    async def close(self) -> None:
        await _cancel(self._listening)
        if self._pid.done() and not self._pid.cancelled():
            self._pid.exception()  # told already

    def oom_killed(self) -> bool:
        return False


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
