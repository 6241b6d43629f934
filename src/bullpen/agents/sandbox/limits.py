"""What a sandbox may use, and what it is made with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bullpen.errors import BadOption
from bullpen.job.checks import check_kind, check_whole

_MB = 1 << 20
_MOST_MB = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the code in a sandbox may use; over it, a command is ended and says why."""

    memory_mb: int = 1_024
    """Memory of all processes together."""
    cpus: float = 1.0
    """Cores that it may keep busy."""
    cpu_seconds: int | None = None
    """Processor time of a command with all that it starts; None for as much as its time allows."""
    processes: int = 128
    """Processes and threads at once."""
    disk_mb: int = 512
    """What the workspace holds, and `/tmp` again; it is memory, with bubblewrap."""
    files: int = 100_000
    """Files and folders in both."""
    open_files: int = 1_024
    timeout: float = 300.0
    """Seconds that a command may take, unless it is told otherwise."""
    output_bytes: int = 1_000_000
    """Kept of each of standard output and error; what is beyond is cut."""
    flood_bytes: int = 64_000_000
    """Written to both, this ends the command."""
    network: bool = False
    """Whether the host's network is there, its own services included."""

    def __post_init__(self) -> None:
        check_whole("memory_mb", self.memory_mb, 16, _MOST_MB)
        check_whole("processes", self.processes, 1, 100_000)
        check_whole("disk_mb", self.disk_mb, 1, _MOST_MB)
        check_whole("files", self.files, 100, 1_000_000_000)
        check_whole("open_files", self.open_files, 16, 1_000_000)
        check_whole("output_bytes", self.output_bytes, 0, 1_000_000_000)
        check_whole("flood_bytes", self.flood_bytes, max(1, self.output_bytes), 1_000_000_000_000)
        if self.cpu_seconds is not None:
            check_whole("cpu_seconds", self.cpu_seconds, 1, 1_000_000)
        check_kind("network", self.network, bool, "True or False")
        check_seconds("timeout", self.timeout)
        if isinstance(self.cpus, bool) or not isinstance(self.cpus, int | float) or not 0.01 <= self.cpus <= 1024:
            raise BadOption(f"cpus: a number from 0.01 to 1024, not {self.cpus!r}")

    @property
    def memory_bytes(self) -> int:
        return self.memory_mb * _MB

    @property
    def disk_bytes(self) -> int:
        return self.disk_mb * _MB


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a sandbox is made with. Two that are equal are as good as each other, so a warm one can serve."""

    image: str = ""
    """Of a container or a service: what it starts from. Bubblewrap shows the host's own `/usr`."""
    limits: Limits = field(default_factory=Limits)
    packages: tuple[str, ...] = ()
    """Python packages that are there, as pip names them: `("pandas==2.2.3",)`. Bubblewrap only."""
    inputs: Mapping[str, Path] = field(default_factory=dict)
    """Files of the host that are readable below `/inputs`, by their name there."""

    def __post_init__(self) -> None:
        check_kind("image", self.image, str, "a name")
        check_kind("limits", self.limits, Limits, "Limits")
        check_kind("packages", self.packages, tuple, "a tuple of requirements")
        for package in self.packages:
            # Anything else would be an option of pip's, or a place of somebody's choice.
            if not isinstance(package, str) or not package[:1].isalnum():
                raise BadOption(f"packages: the name of a package, and a version if you like, not {package!r}")
        for name in self.inputs:
            check_input(name)

    @property
    def key(self) -> object:
        """Equal for sandboxes that are as good as each other."""
        return self.image, self.limits, self.packages, tuple(sorted(self.inputs.items()))


def check_seconds(option: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1_000_000:
        raise BadOption(f"{option}: seconds, more than 0, not {value!r}")


def check_input(name: object) -> None:
    if isinstance(name, str) and name and "\0" not in name:
        path = PurePosixPath(name)
        if not path.is_absolute() and ".." not in path.parts and path.parts:
            return
    raise BadOption(f"inputs: a name below /inputs, such as data.csv, not {name!r}")
