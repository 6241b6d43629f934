"""How long it takes to get a sandbox: from a warm pool, and made on the spot.

python -m benchmarks.sandbox [rounds]
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from bullpen.agents.sandbox import BubblewrapDriver, PoolOptions, Registry, SandboxPool

ROUNDS = 40


async def acquire_ms(pool: SandboxPool, rounds: int, warm: int) -> list[float]:
    """One after the other, each once the pool is warm again."""
    times = []
    for _ in range(rounds):
        while pool.stats().available < warm:
            await asyncio.sleep(0.005)
        start = time.perf_counter()
        sandbox = await pool.acquire()
        times.append((time.perf_counter() - start) * 1000)
        await pool.release(sandbox)
    return sorted(times)


async def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        for name, warm in (("from a warm pool", 2), ("made on the spot", 0)):
            options = PoolOptions(warm=warm, most=4)
            async with SandboxPool(BubblewrapDriver(), options=options, registry=Registry(Path(folder))) as pool:
                times = await acquire_ms(pool, rounds, warm)
            p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
            print(f"{name:<18} p50 {p50:7.2f} ms   p95 {p95:7.2f} ms   of {rounds}")


if __name__ == "__main__":
    asyncio.run(main())
