"""Which sandboxes a worker uses, by argument, environment or default."""

from pathlib import Path

from bullpen.agents.sandbox.base import Driver
from bullpen.agents.sandbox.bubblewrap import BubblewrapDriver
from bullpen.agents.sandbox.words import PoolOptions
from bullpen.errors import BadOption
from bullpen.settings import told, whole_from

SANDBOX = "BULLPEN_SANDBOX"
CGROUP = "BULLPEN_SANDBOX_CGROUP"
MOST, WARM = "BULLPEN_SANDBOX_MOST", "BULLPEN_SANDBOX_WARM"
DRIVERS = ("bubblewrap", "docker", "e2b")
_MOST_SANDBOXES = 100_000


def driver_name() -> str:
    """What `BULLPEN_SANDBOX` says, or bubblewrap."""
    return told(SANDBOX) or DRIVERS[0]


def driver_from(name: str | None = None) -> Driver:
    """The driver of this name; without one `BULLPEN_SANDBOX` says, and without that it is bubblewrap."""
    name = name or driver_name()
    match name:
        case "bubblewrap":
            return BubblewrapDriver(cgroup=cgroup_from())
        case "docker":
            from bullpen.agents.sandbox.docker import DockerDriver

            return DockerDriver()
        case "e2b":
            from bullpen.agents.sandbox.e2b import E2BDriver

            return E2BDriver()
        case "firecracker":
            raise BadOption(f"{SANDBOX}: there is no driver for firecracker itself; use e2b, which runs on it")
        case _:
            raise BadOption(f"{SANDBOX}: one of {', '.join(DRIVERS)}, not {name!r}")


def cgroup_from() -> Path | None:
    said = told(CGROUP)
    return Path(said) if said else None


def pool_options_from() -> PoolOptions:
    """How many sandboxes a worker has; BadOption names the setting that is wrong."""
    usual = PoolOptions()
    most = whole_from(MOST, usual.most, 1, _MOST_SANDBOXES)
    return PoolOptions(most=most, warm=whole_from(WARM, min(usual.warm, most), 0, most))
