"""Makes sandboxes with bubblewrap."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from bullpen.agents.sandbox.base import Level, Sandbox
from bullpen.agents.sandbox.bubblewrap.arguments import find_python
from bullpen.agents.sandbox.bubblewrap.process import BubblewrapChannel
from bullpen.agents.sandbox.bubblewrap.starting import is_root, mark, start
from bullpen.agents.sandbox.cgroups import Cgroups
from bullpen.agents.sandbox.guarded import GuardedSandbox
from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.sandbox.packages import Packages
from bullpen.agents.sandbox.processes import end_process, marked, start_time
from bullpen.errors import BadOption, SandboxBroken, SandboxUnavailable


class BubblewrapDriver:
    """Namespaces on the host's kernel. `cgroup` is a control group (v2) that was delegated to the worker."""

    name = "bubblewrap"
    level = Level.NAMESPACE

    def __init__(self, *, cgroup: Path | None = None, packages: Path | None = None) -> None:
        self._program = shutil.which("bwrap")
        self._python = find_python(other_user=is_root())
        self.cgroups = Cgroups.find(cgroup)
        self._packages = Packages(packages)

    async def create(self, spec: SandboxSpec, *, id: str) -> GuardedSandbox:  # noqa: A002
        if spec.image:
            raise BadOption(f"image: bubblewrap shows the host's own programs and takes none, not {spec.image!r}")
        if self._program is None:
            raise SandboxUnavailable("bubblewrap is not installed: there is no program bwrap")
        if self._python is None:
            raise SandboxUnavailable("there is no Python that could be shown to a sandbox: install python3")
        packages = await self._packages.folder(spec.packages, self._python)
        channel = await start((self._program, self._python), spec, packages=packages, cgroups=self.cgroups, name=id)
        sandbox = GuardedSandbox(id, self.level, spec, channel, count_files=True)
        try:
            await channel.open()
            await sandbox.greet()
        except SandboxBroken as error:
            await sandbox.kill()
            why = channel.complaint()
            await sandbox.close()
            raise SandboxUnavailable(f"bubblewrap made no sandbox: {why or error}") from error
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    def token(self, sandbox: Sandbox) -> dict[str, str | int]:
        assert isinstance(sandbox, GuardedSandbox)
        channel = sandbox.channel
        assert isinstance(channel, BubblewrapChannel)
        token: dict[str, str | int] = {"pid": channel.pid, "started": start_time(channel.pid) or 0}
        if channel.group:
            token["cgroup"] = str(channel.group.path)
        return token

    async def reap(self, token: Mapping[str, str | int]) -> None:
        await asyncio.to_thread(_end_processes, token)
        if self.cgroups and "cgroup" in token:
            await self.cgroups.group(Path(str(token["cgroup"])).name).remove()

    async def close(self) -> None:
        pass


def _end_processes(token: Mapping[str, str | int]) -> None:
    if token.get("pid"):  # else its owner died while it made one
        end_process(int(token["pid"]), int(token["started"]))
    # One whose owner died before it could ask to die with it waits for ever.
    for pid, started in marked(mark(str(token["id"]))):
        end_process(pid, started)
