"""In what setting a run was made: the machine, the versions, the sizes."""

import os
import platform
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import postgres
from benchmarks.peers.environments import NotInstalled, version_in
from benchmarks.plan import Commands, Sizes
from benchmarks.redis import server


async def setting_of(sizes: Sizes, load: float, commands: Commands) -> list[str]:
    stores = {"Redis": server.version(), "SQLite": sqlite3.sqlite_version, "PostgreSQL": postgres.version()}
    versions = [
        f"Python {platform.python_version()}",
        *(f"{name} {found or 'absent'}" for name, found in stores.items()),
    ]
    peers = [f"{name} {_of_peer(name, command)}" for name, command in sorted(commands.items())]
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, {_machine()} (load {load:.1f} before the run), {', '.join(versions)}.",
        f"Peers: {', '.join(peers)}." if peers else "No peers.",
        f"Rounds: {sizes.rounds}, each of up to {sizes.jobs:,} jobs and {sizes.samples} pickups.",
    ]


def _of_peer(name: str, command: object) -> str:
    return f"not installed ({command})" if isinstance(command, NotInstalled) else version_in(name)


def _machine() -> str:
    cores = f"{os.cpu_count()} cores"
    about = Path("/proc/cpuinfo")
    models = (
        [line.partition(":")[2].strip() for line in about.read_text().splitlines() if line.startswith("model name")]
        if about.exists()
        else []
    )
    return f"{cores}, {models[0]}" if models else cores
