"""What walls this machine really gives: tried, not guessed."""

import asyncio
import secrets
import shutil
from dataclasses import dataclass

from bullpen.agents.sandbox.base import Level
from bullpen.agents.sandbox.bubblewrap.seccomp import filter_program
from bullpen.agents.sandbox.cgroups import why_not
from bullpen.agents.sandbox.limits import Limits, SandboxSpec
from bullpen.agents.sandbox.settings import SANDBOX, cgroup_from, driver_from, driver_name
from bullpen.errors import BadOption, SandboxError

_LITTLE = SandboxSpec(limits=Limits(memory_mb=64, disk_mb=1, timeout=10))
_FIX = "install bubblewrap, and allow users to make namespaces; or set BULLPEN_SANDBOX to docker or e2b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    level: Level
    """What a sandbox of this machine has; none if none could be made."""
    driver: str = "bubblewrap"
    """What makes them."""
    bubblewrap: str = ""
    """Its version; empty if it is not installed, or not what makes them."""
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
        if self.driver != "bubblewrap":
            return f"{self.level.name.lower()} by {self.driver}"
        calls = "system calls filtered" if self.seccomp else "system calls not filtered (no libseccomp)"
        kernel = "memory, processes and cores held by control groups"
        watched = f"memory of a whole sandbox watched, not held, since {self.cgroups}"
        return f"namespaces by bubblewrap {self.bubblewrap}; {calls}; {watched if self.cgroups else kernel}"

    @property
    def fix(self) -> str:
        if self.level >= Level.NAMESPACE:
            return ""
        return _FIX if self.driver == "bubblewrap" else f"see to {self.driver}, or set {SANDBOX} to another"


async def isolation_here() -> Isolation:
    """Make a sandbox as workers would, by `BULLPEN_SANDBOX`, run a command in it, and tell how that went."""
    name = driver_name()
    version = await _version() if name == "bubblewrap" else ""
    try:
        level, why_none = await _tried()
    except (SandboxError, BadOption, OSError) as error:
        level, why_none = Level.NONE, str(error)
    if level < Level.NAMESPACE or name != "bubblewrap":
        return Isolation(level=level, driver=name, bubblewrap=version, why_none=why_none)
    return Isolation(
        level=level,
        bubblewrap=version,
        seccomp=filter_program() is not None,
        cgroups=why_not(cgroup_from()),
    )


async def _tried() -> tuple[Level, str]:
    """How strong the walls are, and why there are none."""
    driver = driver_from()
    try:
        sandbox = await driver.create(_LITTLE, id=f"trial{secrets.token_hex(4)}")
        try:
            outcome = await sandbox.run(["true"])
        finally:
            await sandbox.close()
    finally:
        await driver.close()
    return (driver.level, "") if outcome.ok else (Level.NONE, f"a command ended by {outcome.ended}")


async def _version() -> str:
    program = shutil.which("bwrap")
    if program is None:
        return ""
    process = await asyncio.create_subprocess_exec(program, "--version", stdout=asyncio.subprocess.PIPE)
    answer, _ = await process.communicate()
    return answer.decode().strip().rpartition(" ")[2]
