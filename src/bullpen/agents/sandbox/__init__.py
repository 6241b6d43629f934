"""Sandboxes: where code runs that nobody vouches for."""

from bullpen.agents.sandbox.base import (
    Driver,
    Ending,
    FileContent,
    FileEntry,
    Level,
    OnLine,
    Outcome,
    Sandbox,
    require,
)
from bullpen.agents.sandbox.bubblewrap import BubblewrapDriver
from bullpen.agents.sandbox.isolation import Isolation, isolation_here
from bullpen.agents.sandbox.limits import Limits, SandboxSpec
from bullpen.agents.sandbox.pool import SandboxPool
from bullpen.agents.sandbox.registry import Entry, Registry
from bullpen.agents.sandbox.settings import driver_from
from bullpen.agents.sandbox.words import Pooled, PoolOptions, PoolStats

__all__ = [
    "BubblewrapDriver",
    "Driver",
    "Ending",
    "Entry",
    "FileContent",
    "FileEntry",
    "Isolation",
    "Level",
    "Limits",
    "OnLine",
    "Outcome",
    "PoolOptions",
    "PoolStats",
    "Pooled",
    "Registry",
    "Sandbox",
    "SandboxPool",
    "SandboxSpec",
    "driver_from",
    "isolation_here",
    "require",
]
