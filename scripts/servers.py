"""Find the servers that the tests need, or install them: Redis."""

import os
import shutil
import subprocess
import sys

_PROGRAM = "redis-server"
_HOW = (
    f"{_PROGRAM} was not found and could not be installed.\n"
    "Install Redis 7 or later, then try again:\n"
    "  Debian, Ubuntu   sudo apt-get install redis-server\n"
    "  Fedora           sudo dnf install redis\n"
    "  macOS            brew install redis"
)


def main() -> int:
    program = shutil.which(_PROGRAM) or _install()
    if program is None:
        print(_HOW, file=sys.stderr)
        return 1
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    print(f"Redis: {answer.stdout.strip()}")
    return 0


def _install() -> str | None:
    """Install the distribution's package where we may; the program's path, or None."""
    command = _as_root(["apt-get"])
    if shutil.which("apt-get") is None or command is None:
        return None
    print(f"{_PROGRAM} is missing: installing it with apt-get", flush=True)
    # A service of its own would take a port that nobody asked for; the tests start their own.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", _PROGRAM]):
        if subprocess.run(command + step, env=environment, check=False).returncode != 0:
            return None
    return shutil.which(_PROGRAM)


def _as_root(command: list[str]) -> list[str] | None:
    if os.geteuid() == 0:
        return command
    # -n: fail rather than wait for a password that nobody types.
    return ["sudo", "-n", *command] if shutil.which("sudo") else None


if __name__ == "__main__":
    sys.exit(main())
