"""What walls this machine really gives: tried, not guessed."""

import asyncio
import shutil
from dataclasses import dataclass

from bullpen.agents.sandbox.base import Level
from bullpen.agents.sandbox.bubblewrap import BubblewrapDriver
from bullpen.agents.sandbox.bubblewrap.seccomp import filter_program
from bullpen.agents.sandbox.cgroups import why_not
from bullpen.agents.sandbox.limits import Limits, SandboxSpec
from bullpen.agents.sandbox.settings import cgroup_from
from bullpen.errors import SandboxError

_LITTLE = SandboxSpec(limits=Limits(memory_mb=64, disk_mb=1, timeout=10))
_FIX = "install bubblewrap, and allow users to make namespaces; or set BULLPEN_SANDBOX to docker or e2b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    level: Level
    """What a sandbox of this machine has: namespace, or none."""
    bubblewrap: str
    """Its version; empty if it is not installed."""
    why_none: str = ""
    """What failed when a sandbox was tried."""
    seccomp: bool = False
    """Whether system calls are filtered."""
    cgroups: str = ""
    """Why control groups cannot be used; empty if they are."""

    def tell(self) -> str:
        """In one line, for people."""
        if self.level < Level.NAMESPACE:
            return f"none: {self.why_none}"
        calls = "system calls filtered" if self.seccomp else "system calls not filtered (no libseccomp)"
        kernel = "memory, processes and cores held by control groups"
        watched = f"memory of a whole sandbox watched, not held, since {self.cgroups}"
        return f"namespaces by bubblewrap {self.bubblewrap}; {calls}; {watched if self.cgroups else kernel}"

    @property
    def fix(self) -> str:
        return _FIX if self.level < Level.NAMESPACE else ""


async def isolation_here() -> Isolation:
    """Make a sandbox, run a command in it, and tell how that went."""
    version = await _version()
    try:
        sandbox = await BubblewrapDriver(cgroup=cgroup_from()).create(_LITTLE, id="trial")
        try:
            outcome = await sandbox.run(["true"])
        finally:
            await sandbox.close()
    except (SandboxError, OSError) as error:
        return Isolation(level=Level.NONE, bubblewrap=version, why_none=str(error))
    if not outcome.ok:
        return Isolation(level=Level.NONE, bubblewrap=version, why_none=f"a command ended by {outcome.ended}")
    return Isolation(
        level=Level.NAMESPACE,
        bubblewrap=version,
        seccomp=filter_program() is not None,
        cgroups=why_not(cgroup_from()),
    )


async def _version() -> str:
    program = shutil.which("bwrap")
    if program is None:
        return ""
    process = await asyncio.create_subprocess_exec(program, "--version", stdout=asyncio.subprocess.PIPE)
    answer, _ = await process.communicate()
    return answer.decode().strip().rpartition(" ")[2]
