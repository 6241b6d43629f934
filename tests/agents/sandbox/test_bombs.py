"""Code that tries to take the host down: it is ended, and host and sandbox are well afterwards."""

import dataclasses
import signal

import pytest

from bullpen.agents.sandbox import Ending, Sandbox
from bullpen.errors import SandboxRefused
from tests.agents.sandbox.conftest import SMALL, MakeSandbox
from tests.agents.sandbox.trying import python, shell

pytestmark = pytest.mark.usefixtures("all_is_well_afterwards")


async def test_a_fork_bomb(sandbox: Sandbox) -> None:
    """It reaches its limit, and all of it ends with its time."""
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    outcome = await python(sandbox, bomb, timeout=1)
    assert outcome.ended in {Ending.TIMEOUT, Ending.PROCESSES, Ending.OUT_OF_MEMORY}


async def test_the_limit_of_processes_is_the_kernels(sandbox: Sandbox) -> None:
    program = (
        "import os, time\nmade = 0\n"
        "try:\n    while made < 1000:\n"
        "        if os.fork() == 0: time.sleep(60)\n        made += 1\n"
        "except BlockingIOError: print(made, flush=True)\n"
    )
    outcome = await python(sandbox, program)
    assert outcome.ok
    assert int(outcome.stdout) < SMALL.processes


async def test_a_memory_bomb(sandbox: Sandbox) -> None:
    outcome = await python(sandbox, "x = []\nwhile True: x.append(bytearray(1 << 20))")
    assert outcome.ended is Ending.OUT_OF_MEMORY or b"MemoryError" in outcome.stderr
    assert outcome.code != 0


async def test_a_memory_bomb_of_many_processes(sandbox: Sandbox) -> None:
    """Each stays below its own limit; together they do not."""
    program = "import os, time\nfor _ in range(4): os.fork()\nx = bytearray(b'x') * (30 << 20)\ntime.sleep(60)"
    outcome = await python(sandbox, program)
    assert outcome.ended is Ending.OUT_OF_MEMORY


async def test_memory_that_is_shared_counts_too(sandbox: Sandbox) -> None:
    program = (
        "import mmap, time\nm = mmap.mmap(-1, 200 << 20)\nfor i in range(0, 200 << 20, 4096): m[i] = 1\ntime.sleep(60)"
    )
    outcome = await python(sandbox, program)
    assert outcome.ended is Ending.OUT_OF_MEMORY


@pytest.mark.parametrize("folder", ["/workspace", "/tmp", "/dev/shm"])
async def test_filling_the_disk(sandbox: Sandbox, folder: str) -> None:
    """Many files, none over its own limit: the place is full at its size, and the program is told."""
    fill = f"i=0; while head -c 1000000 /dev/zero > {folder}/$i; do i=$((i+1)); done; exit 1"
    outcome = await shell(sandbox, fill)
    assert outcome.ended is Ending.DISK_FULL
    held = await shell(sandbox, f"du -sm {folder} | cut -f1")
    assert int(held.stdout) <= SMALL.disk_mb + 1
    if folder == "/workspace":
        with pytest.raises(SandboxRefused) as refusal:
            await sandbox.write("more", b"x" * 2_000_000)
        assert refusal.value.kind == "disk-full"
    await shell(sandbox, f"rm {folder}/*")
    await sandbox.write("again", b"x")


async def test_filling_the_disk_with_empty_files(sandbox: Sandbox) -> None:
    outcome = await python(sandbox, "i = 0\nwhile True: open(f'/tmp/{i}', 'w').close(); i += 1")
    assert outcome.ended is Ending.DISK_FULL


async def test_endless_output_is_cut_and_ended(make: MakeSandbox) -> None:
    sandbox = await make(limits=dataclasses.replace(SMALL, flood_bytes=1_000_000))
    outcome = await shell(sandbox, "yes")
    assert outcome.ended is Ending.OUTPUT_LIMIT
    assert (len(outcome.stdout), outcome.stdout_cut) == (SMALL.output_bytes, True)
    assert await sandbox.ping()


async def test_long_output_is_cut(sandbox: Sandbox) -> None:
    outcome = await shell(sandbox, "head -c 500000 /dev/zero; head -c 10000 /dev/zero >&2; exit 5")
    assert (outcome.ended, outcome.code) == (Ending.EXIT, 5)
    assert (len(outcome.stdout), outcome.stdout_cut) == (10_000, True)
    assert (len(outcome.stderr), outcome.stderr_cut) == (10_000, False)


async def test_who_ignores_signals_is_ended_all_the_same(sandbox: Sandbox) -> None:
    program = (
        "import os, signal, time\n"
        "for n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "if os.fork() == 0: os.setsid()\n"
        "if os.fork() == 0: os.setsid()\n"
        "while True: time.sleep(1)\n"
    )
    outcome = await python(sandbox, program, timeout=0.5)
    assert (outcome.ended, outcome.code) == (Ending.TIMEOUT, -signal.SIGKILL)


async def test_burning_the_processor_ends(make: MakeSandbox) -> None:
    """Also when it is done by many processes that come and go."""
    sandbox = await make(limits=dataclasses.replace(SMALL, cpu_seconds=1))
    outcome = await shell(sandbox, "while true; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done")
    assert outcome.ended is Ending.CPU_TIME


async def test_the_warden_is_out_of_reach(sandbox: Sandbox) -> None:
    """It cannot be ended, stopped or read by what it runs; nor can its answers be forged."""
    signals = "for s in KILL STOP INT TERM HUP USR1 ALRM CHLD; do kill -$s 1; done"
    outcome = await shell(sandbox, f"{signals}; ls /proc/1/fd; echo x > /proc/1/fd/1")
    assert b"Permission denied" in outcome.stderr
    assert await sandbox.ping()


async def test_what_a_command_started_does_not_outlive_it(sandbox: Sandbox) -> None:
    outcome = await shell(sandbox, "setsid sleep 1000 & (setsid sh -c 'sleep 1000 &') & echo started")
    assert outcome.ok
    left = await shell(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert b"sleep 1000" not in left.stdout
