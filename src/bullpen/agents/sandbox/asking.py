"""The sandbox that a task asks for: within what the deployment gives, never beyond."""

from dataclasses import replace
from typing import Any

import msgspec

from bullpen.agents.sandbox.limits import Limits, SandboxSpec
from bullpen.agents.sandbox.settings import DRIVERS
from bullpen.errors import BadOption
from bullpen.settings import switch_from, told

MEMORY, DISK, CPUS = "BULLPEN_SANDBOX_MEMORY_MB", "BULLPEN_SANDBOX_DISK_MB", "BULLPEN_SANDBOX_CPUS"
TIMEOUT = "BULLPEN_SANDBOX_TIMEOUT"
NETWORK, PACKAGES = "BULLPEN_SANDBOX_NETWORK", "BULLPEN_SANDBOX_PACKAGES"
_BOUNDED = ("memory_mb", "cpus", "disk_mb", "timeout")


class SandboxAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is not told is as the deployment has it."""

    type: str | None = None
    """bubblewrap, docker or e2b; a worker that has it takes the task."""
    memory_mb: int | None = None
    cpus: float | None = None
    disk_mb: int | None = None
    timeout: float | None = None
    """Seconds of a command."""
    network: bool | None = None
    packages: tuple[str, ...] | None = None
    """Of those that the deployment has."""


def usual_spec() -> SandboxSpec:
    """The sandbox of runs where nobody gave another, by the environment. BadOption names what is wrong."""
    settings = {"memory_mb": MEMORY, "disk_mb": DISK, "cpus": CPUS, "timeout": TIMEOUT}
    sizes = {option: _number(setting, said) for option, setting in settings.items() if (said := told(setting))}
    packages = tuple(name.strip() for name in (told(PACKAGES) or "").split(",") if name.strip())
    return SandboxSpec(limits=replace(Limits(), network=switch_from(NETWORK, usual=False), **sizes), packages=packages)


def _number(setting: str, said: str) -> Any:
    try:
        return int(said) if setting in (MEMORY, DISK) else float(said)
    except ValueError:
        raise BadOption(f"{setting}: a number, not {said!r}") from None


def check_asked(asked: SandboxAsked | None, most: SandboxSpec) -> SandboxAsked | None:
    """The same; BadOption names the field that this deployment does not give."""
    if asked is None:
        return None
    if asked.type == "firecracker":
        raise BadOption("sandbox.type: there is no driver for firecracker itself; use e2b, which runs on it")
    if asked.type is not None and asked.type not in DRIVERS:
        raise BadOption(f"sandbox.type: one of {', '.join(DRIVERS)}, not {asked.type!r}")
    for name in _BOUNDED:
        wanted, given = getattr(asked, name), getattr(most.limits, name)
        if wanted is not None and wanted > given:
            raise BadOption(f"sandbox.{name}: at most {given:g} here, not {wanted:g}")
    if asked.network and not most.limits.network:
        raise BadOption("sandbox.network: there is none here")
    for package in asked.packages or ():
        if package not in most.packages:
            raise BadOption(f"sandbox.packages: one of {', '.join(most.packages) or 'none'}, not {package!r}")
    try:
        spec_for(asked, most)
    except BadOption as error:
        raise BadOption(f"sandbox.{error}") from None
    return asked


def spec_for(asked: SandboxAsked | None, most: SandboxSpec) -> SandboxSpec:
    """What a worker lends for it: no larger than its own, whatever another process allowed."""
    if asked is None:
        return most
    wanted = {name: getattr(asked, name) for name in _BOUNDED}
    sizes = {name: min(value, getattr(most.limits, name)) for name, value in wanted.items() if value is not None}
    network = most.limits.network and asked.network is not False
    packages = most.packages if asked.packages is None else tuple(p for p in most.packages if p in asked.packages)
    return replace(most, limits=replace(most.limits, network=network, **sizes), packages=packages)
