"""What a machine gives: isolation as it is, control groups where they are delegated, packages that were installed."""

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.agents.sandbox import BubblewrapDriver, Isolation, Level, Limits, SandboxSpec, isolation_here
from bullpen.agents.sandbox.bubblewrap.seccomp import filter_program
from bullpen.agents.sandbox.cgroups import Cgroups, why_not
from bullpen.errors import SandboxUnavailable
from tests.agents.sandbox.serving import serving_docker


async def test_what_this_machine_gives() -> None:
    here = await isolation_here()
    assert here.level is Level.NAMESPACE
    assert here.bubblewrap in here.tell()
    assert here.seccomp is (filter_program() is not None)
    assert here.cgroups == why_not()
    assert here.fix == ""


async def test_a_machine_that_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told with its reason and a remedy, and is no error."""
    monkeypatch.setenv("PATH", "/nowhere")
    here = await isolation_here()
    assert here.level is Level.NONE
    assert here.tell() == "none: bubblewrap is not installed: there is no program bwrap"
    assert "install bubblewrap" in here.fix


async def test_the_driver_that_is_set_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    socket = str(tmp_path / "docker.sock")
    monkeypatch.setenv("BULLPEN_SANDBOX", "docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
    away = await isolation_here()
    assert (away.level, away.driver) == (Level.NONE, "docker")
    assert away.tell().startswith("none: ")
    assert "docker" in away.fix
    async with serving_docker(socket) as server:
        here = await isolation_here()
        assert server.containers == {}, "the one that was tried is gone"
    assert (here.level, here.tell(), here.fix) == (Level.CONTAINER, "container by docker", "")


async def test_a_driver_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_SANDBOX", "firecracker")
    assert "use e2b" in (await isolation_here()).tell()


def test_a_machine_with_control_groups() -> None:
    here = Isolation(level=Level.NAMESPACE, bubblewrap="0.9", seccomp=False)
    assert here.tell().endswith("not filtered (no libseccomp); memory, processes and cores held by control groups")


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    """A folder that looks like a group which was handed on to us; the kernel's own needs an administrator."""
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    return tmp_path


async def test_a_sandbox_is_put_into_its_group(delegated: Path) -> None:
    groups = Cgroups.find(delegated)
    assert groups
    group = groups.group("one")
    group.path.mkdir()
    group.hold(4711, Limits(memory_mb=100, disk_mb=10, processes=7, cpus=0.5))
    written = {path.name: path.read_text() for path in group.path.iterdir()}
    assert written == {
        "memory.max": str(120 << 20),
        "memory.swap.max": "0",
        "pids.max": "8",
        "cpu.max": "50000 100000",
        "cgroup.procs": "4711",
    }
    assert group.oom_kills() == 0
    (group.path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert group.oom_kills() == 2


def test_groups_that_cannot_be_used(delegated: Path, tmp_path: Path) -> None:
    assert why_not(delegated) == ""
    (delegated / "cgroup.subtree_control").write_text("cpu pids\n")
    assert why_not(delegated) == f"{delegated} does not hand on memory"
    assert why_not(tmp_path / "none") == f"{tmp_path / 'none'} is no control group"
    assert Cgroups.find(delegated) is None


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that every user may read, as the sandbox's user must."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _wheel(folder: Path, name: str) -> None:
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", "def answer(): return 42\n")
        about = f"{name}-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")


async def test_packages_are_there_and_cannot_be_changed(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _wheel(open_folder, "nobodys_package")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(open_folder))
    driver = BubblewrapDriver(packages=open_folder / "packages")
    spec = SandboxSpec(packages=("nobodys-package==1.0",))
    for number in range(2):  # the second finds it installed
        sandbox = await driver.create(spec, id=f"p{number}")
        outcome = await sandbox.run(["python3", "-c", "import nobodys_package as n; print(n.answer())"])
        changed = await sandbox.run(["sh", "-c", "echo x > /packages/nobodys_package.py"])
        await sandbox.close()
        assert outcome.stdout == b"42\n", outcome
        assert changed.code != 0
    with pytest.raises(SandboxUnavailable, match="no-such-package"):
        await driver.create(SandboxSpec(packages=("no-such-package",)), id="x")
