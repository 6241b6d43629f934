"""How long a cancel takes, from another process: `python -m benchmarks.cancelling [rounds]`.

Seen: the handler was told. Over: the job has ended. An async handler and a thread that looks
end at once; a process that blocks in C code is killed after its second to give way.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.blocking import block
from bullpen import Context, JobFailed, Queue, SqliteStore, Worker, WorkerOptions, in_process
from bullpen.worker.handlers import Handler, HandlerFunction

_CANCEL = """
import asyncio, sys, time
from bullpen import Queue, SqliteStore

async def main(path, job_id):
    store = SqliteStore(path)
    await store.open()
    print(time.time_ns(), flush=True)
    await Queue(store, "q").job(job_id).cancel("measured")
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def measure(rounds: int) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {"async": [], "thread": [], "process": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queue.db"
        store = SqliteStore(path)
        await store.open()
        queue = Queue(store, "q")
        handlers: dict[str, HandlerFunction | Handler] = {"async": _wait, "thread": _look, "process": in_process(block)}
        worker = Worker(store, {"q": handlers}, WorkerOptions(concurrency=1))
        working = asyncio.create_task(worker.run())
        for _ in range(rounds):
            for kind, times in took.items():
                times.append(await _cancel_one(queue, path, kind))
        worker.stop()
        await working
        await store.close()
    return took


async def _cancel_one(queue: Queue, path: Path, kind: str) -> float:
    job = await queue.add(kind)
    while await job.logs() != ("started",):
        await asyncio.sleep(0.02)
    command = [sys.executable, "-c", _CANCEL, str(path), job.id]
    process = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True, timeout=60)
    try:
        await job.result(timeout=30)
    except JobFailed:
        pass
    ended_ms = (await job.record()).finished_ms
    assert ended_ms is not None
    return ended_ms - int(process.stdout) / 1_000_000


async def _wait(ctx: Context) -> None:
    ctx.log("started")
    await asyncio.Event().wait()


def _look(ctx: Context) -> None:
    ctx.log("started")
    while True:
        ctx.check_cancelled()
        time.sleep(0.005)


if __name__ == "__main__":
    found = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
    for kind, times in found.items():
        print(f"{kind:>8}: median {statistics.median(times):6.0f} ms, most {max(times):6.0f} ms")
