"""Jobs on the embedded store, in one process: added, run, retried, cancelled, awaited.

python examples/first_jobs.py
"""

import asyncio
import tempfile
from pathlib import Path

from bullpen import Context, JobFailed, Queue, SqliteStore, Worker, exponential


async def greet(ctx: Context) -> str:
    ctx.log(f"attempt {ctx.attempt}")
    if ctx.data["name"] == "Grace" and ctx.attempt == 1:
        raise ConnectionError("the greeting service is away")
    if ctx.data["name"] == "nobody":
        raise ValueError("there is nobody to greet")
    if ctx.data["name"] == "the slow one":
        await asyncio.sleep(60)
    return f"Hello, {ctx.data['name']}!"


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "queue.db")
        await store.open()
        greetings = Queue(store, "greetings")
        worker = Worker(store, {"greetings": greet})
        working = asyncio.create_task(worker.run())

        names = ["Ada", "Grace", "nobody", "the slow one"]
        jobs = [await greetings.add("greet", {"name": name}, attempts=3, backoff=exponential(0.1)) for name in names]
        await jobs[-1].cancel("it takes too long")
        for name, job in zip(names, jobs, strict=True):
            try:
                print(f"{name:>12}: {await job.result(timeout=10)}")
            except JobFailed as failure:
                print(f"{name:>12}: {failure}")
        print(f"{'counts':>12}: {await greetings.counts()}")

        worker.stop()
        await working
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
