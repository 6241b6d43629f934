"""What bubblewrap is told: which namespaces, which files, which places to write to."""

import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.sandbox.warden.sending import BOOTSTRAP

_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "ssl/certs",
    "ca-certificates",
    "fonts",
)
"""What programs look for and what says nothing about this host."""
_ETC_OF_NETWORKS = ("resolv.conf", "hosts", "nsswitch.conf", "services", "protocols")
USERS = "root:x:0:0:root:/:/sbin/nologin\nsandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
GROUPS = "root:x:0:\nsandbox:x:1000:\n"
_SHARED_BYTES = 64 << 20


def find_python(*, other_user: bool) -> str | None:
    """A Python that can be shown to the sandbox: our own where it may be read there, else the system's."""
    own = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if own.is_file() and (own.is_relative_to("/usr") or not other_user or _readable_by_all(own)):
        return str(own)
    return shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")


def _readable_by_all(path: Path) -> bool:
    try:
        return all(one.stat().st_mode & stat.S_IXOTH for one in (path, *path.parents))
    except OSError:
        return False


def namespaces(*, network: bool) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL")
    if network:
        yield "--share-net"
    yield from ("--die-with-parent", "--new-session", "--as-pid-1", "--clearenv")
    yield from ("--uid", "1000", "--gid", "1000", "--hostname", "sandbox")


def system(python: str, *, network: bool) -> Iterator[str]:
    """The host's programs, to read; nothing else of its files."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _LINKS:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in (*_ETC, *(_ETC_OF_NETWORKS if network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    if not python.startswith(("/usr/", "/bin/")):
        prefix = str(Path(python).parents[1])
        yield from ("--ro-bind", prefix, prefix)


def scratch(spec: SandboxSpec) -> Iterator[str]:
    """Where it may write: each place is memory with a size, so that filling it hurts nobody else."""
    disk = str(spec.limits.disk_bytes)
    yield from ("--proc", "/proc", "--dev", "/dev")
    shared = str(min(_SHARED_BYTES, spec.limits.disk_bytes))
    yield from ("--size", shared, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
    yield from ("--perms", "1777", "--size", disk, "--tmpfs", "/tmp")  # noqa: S108
    yield from ("--size", disk, "--tmpfs", "/workspace")
    yield from ("--chdir", "/workspace", "--remount-ro", "/")


def bootstrap(python: str) -> Sequence[str]:
    return ("--", python, "-I", "-S", "-c", BOOTSTRAP)
