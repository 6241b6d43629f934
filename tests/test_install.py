"""What one gets who installs Bullpen without extras: small, quick to import, and whole."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAX_BYTES = 6_000_000
LIMIT_S = 280
_NO_INDEX = re.compile(r"No matching distribution|Could not find a version|Temporary failure|Connection|Max retries")
_NOT_OURS = re.compile(r"^(pip|setuptools|_distutils_hack|pkg_resources|distutils-precedence)")
_HEAVY = {
    "alembic",
    "fastapi",
    "hiredis",
    "httpx",
    "hypothesis",
    "mcp",
    "multiprocessing",
    "opentelemetry",
    "pydantic",
    "pytest",
    "redis",
    "rich",
    "sqlalchemy",
    "uvloop",
}

pytestmark = pytest.mark.xdist_group("install")


def _run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0 and _NO_INDEX.search(done.stderr) and "CI" not in os.environ:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel of this tree in it, and nothing else but what that needs."""
    folder = tmp_path_factory.mktemp("install")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    _run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("bullpen-*.whl")
    print(f"\nwheel: {wheel.stat().st_size:,} bytes")
    _run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    _run(*pip, "--python", folder / "venv" / "bin" / "python", "install", wheel)
    return folder / "venv"


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel of the conformance kit."""
    return _unpacked(tmp_path_factory, "conformance")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel of what stands on the queue."""
    return _unpacked(tmp_path_factory, "platform")


def _unpacked(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    folder = tmp_path_factory.mktemp(name)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    _run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT / "packages" / name)
    (wheel,) = folder.glob(f"bullpen_{name}-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / name)
    return folder / name / "bullpen"


def _python(venv: Path, code: str) -> str:
    return _run(venv / "bin" / "python", "-I", "-c", code)


def test_the_base_install_is_small(venv: Path) -> None:
    """With all that it depends on, on the disk."""
    (packages,) = venv.glob("lib/*/site-packages")
    sizes = {
        entry.name: sum(file.stat().st_size for file in [entry, *entry.rglob("*")] if file.is_file())
        for entry in packages.iterdir()
        if not _NOT_OURS.match(entry.name)
    }
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{size:>12,}  {name}")
    print(f"{sum(sizes.values()):>12,}  in all")
    assert {name for name in sizes if "." not in name} == {"bullpen", "cronsim", "msgspec"}
    assert sum(sizes.values()) < MAX_BYTES


def test_the_front_door_imports_nothing_heavy(venv: Path) -> None:
    """Neither what extras bring, nor what only tests need: here, and where all of it is installed."""
    code = "import bullpen, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    for python in (venv / "bin" / "python", Path(sys.executable)):
        modules = set(_run(python, "-I", "-c", code).split())
        assert "bullpen" in modules
        assert not modules & _HEAVY, python


def test_every_module_is_in_one_of_the_wheels(venv: Path, kit: Path, platform: Path) -> None:
    """All public names, the marker for type checkers, and the files that are no modules; and none in two."""
    code = "import bullpen as b; print(all(hasattr(b, name) for name in b.__all__), b.__path__[0])"
    has_all, where = _python(venv, code).split(maxsplit=1)
    assert has_all == "True"
    parts = [_files(Path(where.strip())), _files(kit), _files(platform)]
    assert set().union(*parts) == _files(ROOT / "src" / "bullpen")
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert {path.parts[:2] for path in parts[1]} == {("testing", "conformance"), ("testing", "machine")}
    assert {path.parts[0] for path in parts[2]} == {"agents", "builtin", "records", "server"}


def _files(folder: Path) -> set[Path]:
    kinds = {".py", ".lua", ".sql", ".toml", ".typed"}
    return {path.relative_to(folder) for path in folder.rglob("*") if path.suffix in kinds}


def test_verbs_of_the_platform_say_what_is_missing(venv: Path, tmp_path: Path) -> None:
    """On the base install; `doctor` has nothing to say of it."""
    for verb in (["server"], ["keys"], ["users"]):
        command = [str(venv / "bin" / "bullpen"), *verb]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 2, done.stderr
        assert "pip install 'bullpen[server]'" in done.stderr
    where = ("--store", f"sqlite:{tmp_path / 'queue.db'}")
    _run(venv / "bin" / "bullpen", *where, "enqueue", "mail", "welcome")
    assert "sandbox" not in _run(venv / "bin" / "bullpen", *where, "doctor", "--json")


def test_a_job_runs_on_the_base_install(venv: Path, tmp_path: Path) -> None:
    code = """
import asyncio, sys
from bullpen import Bullpen, Context
from bullpen.testing import run_until_empty

pen = Bullpen(sys.argv[1])

@pen.job
async def double(ctx: Context, n: int) -> int:
    return 2 * n

async def main():
    async with pen:
        await double.add(n=21)
        print((await run_until_empty(pen)).runs[0].result)

asyncio.run(main())
"""
    assert _run(venv / "bin" / "python", "-I", "-c", code, f"sqlite:{tmp_path / 'queue.db'}") == "42\n"


def test_the_pytest_plugin_is_registered(venv: Path) -> None:
    code = "from importlib.metadata import entry_points; print(*entry_points(group='pytest11'))"
    assert "bullpen.testing.plugin" in _python(venv, code)


def test_the_command_helps(venv: Path) -> None:
    """`bullpen --help` works without any extra."""
    command = venv / "bin" / "bullpen"
    if not command.exists():
        pytest.skip("this tree has no command yet")
    assert "usage" in _run(command, "--help", NO_COLOR="1").lower()


def test_the_dashboard_is_in_the_wheel(platform: Path) -> None:
    """The page and all that it names; `bullpen server` has nothing to build."""
    folder = platform / "server" / "dashboard"
    named = re.findall(r'(?:src|href)="/([^"]+)"', (folder / "index.html").read_text())
    assert {Path(name).suffix for name in named} == {".js", ".css", ".svg"}
    assert [name for name in named if not (folder / name).is_file()] == []
