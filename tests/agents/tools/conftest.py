"""A run with a real sandbox, and a drawer for the files that it keeps."""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import pytest

from bullpen.agents.sandbox import BubblewrapDriver, Limits, Sandbox, SandboxSpec
from bullpen.agents.tools.tool import ToolContext
from tests.agents.tools.site import Site, site_at

SMALL = Limits(memory_mb=512, disk_mb=32, processes=64, files=2_000, timeout=30, output_bytes=200_000)


class Kept(NamedTuple):
    data: bytes
    mime: str
    metadata: dict[str, Any]


class Drawer:
    """Keeps files as a run does: the same for the same key and name."""

    def __init__(self) -> None:
        self.files: dict[str, Kept] = {}

    async def __call__(
        self, key: str, name: str, data: bytes, *, mime: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        self.files[f"{key}/{name}"] = Kept(data, mime, dict(metadata or {}))
        return f"{key}/{name}"

    def named(self, name: str) -> Kept:
        """The only one of this name."""
        [kept] = [one for key, one in self.files.items() if key.endswith(f"/{name}")]
        return kept


@pytest.fixture
def drawer() -> Drawer:
    return Drawer()


@pytest.fixture
def ctx(drawer: Drawer) -> ToolContext:
    """Of a run without a sandbox."""
    return ToolContext(task_id="r1", key="r1/3", tenant="acme", files=drawer)


SandboxedContext = Callable[..., Awaitable[ToolContext]]


@pytest.fixture
async def with_sandbox(drawer: Drawer) -> AsyncIterator[SandboxedContext]:
    """Makes contexts, each with a sandbox of its own."""
    if shutil.which("bwrap") is None:
        assert not os.environ.get("CI"), "bubblewrap is not installed"
        pytest.skip("bubblewrap is not installed")
    made: list[Sandbox] = []

    async def make(*, files: bool = True, **limits: Any) -> ToolContext:
        spec = SandboxSpec(limits=Limits(**{**{name: getattr(SMALL, name) for name in SMALL.__slots__}, **limits}))
        sandbox = await BubblewrapDriver().create(spec, id=f"test-{len(made)}")
        made.append(sandbox)

        async def lend() -> Sandbox:
            return sandbox

        return ToolContext(task_id="r1", key="r1/3", sandbox=lend, files=drawer if files else None)

    yield make
    for sandbox in made:
        await sandbox.close()


@pytest.fixture
async def boxed(with_sandbox: SandboxedContext) -> ToolContext:
    return await with_sandbox()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Pages at 127.0.0.1."""
    async with site_at("127.0.0.1") as site:
        yield site


@pytest.fixture
async def secret_site() -> AsyncIterator[Site]:
    """Pages at another address of this machine, which nobody may call."""
    async with site_at("127.0.0.2") as site:
        yield site
