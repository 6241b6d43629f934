"""Python packages that are there when a sandbox starts: installed once on the host, shown read-only.

Only wheels are taken: to build a package is to run its code, and that would be on the host.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from bullpen.errors import SandboxUnavailable

_DONE = ".complete"


class Packages:
    """Folders of packages, by what is in them."""

    def __init__(self, root: Path | None) -> None:
        self._root = root or Path(tempfile.gettempdir()) / f"bullpen-packages-{os.geteuid()}"

    async def folder(self, packages: tuple[str, ...], python: str) -> Path | None:
        """A folder with these packages for that Python; None for none."""
        if not packages:
            return None
        version = await _version(python)
        name = hashlib.sha256("\n".join((version, *sorted(packages))).encode()).hexdigest()[:32]
        folder = self._root / name
        if not (folder / _DONE).exists():
            await self._install(folder, packages, version)
        return folder

    async def _install(self, folder: Path, packages: tuple[str, ...], version: str) -> None:
        self._root.mkdir(mode=0o755, parents=True, exist_ok=True)
        if self._root.stat().st_uid != os.geteuid():
            raise SandboxUnavailable(f"packages: {self._root} belongs to another user")
        with (self._root / f"{folder.name}.lock").open("w") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            if (folder / _DONE).exists():
                return  # another worker was quicker
            shutil.rmtree(folder, ignore_errors=True)
            await _pip(folder, packages, version)
            (folder / _DONE).touch()


async def _version(python: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(python, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"), stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await process.communicate()
    return answer.decode().strip()


async def _pip(folder: Path, packages: tuple[str, ...], version: str) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pip", "install", *options),
        *("--python-version", version, "--target", str(folder), "--", *packages),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    answer, _ = await process.communicate()
    if process.returncode != 0:
        raise SandboxUnavailable(f"packages: pip could not install them: {answer.decode(errors='replace').strip()}")
