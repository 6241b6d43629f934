"""Child: one worker process on a Redis server; it speaks as benchmarks.working does."""

import argparse
import logging
from typing import Any

from benchmarks.children import run, say, when_input_closes
from benchmarks.working import Stopwatch
from benchmarks.workload import QUEUE, noop
from bullpen import Worker, WorkerOptions
from bullpen.stores.base import Exchanged
from bullpen.stores.redis import RedisStore
from bullpen.worker.runner import calm_collector


def watched(store: RedisStore, watch: Stopwatch) -> RedisStore:
    """The store, and each that is made of it, with a stopwatch at the one verb that claims and settles."""
    exchange, another = store.exchange, store.another

    async def timed_exchange(*args: Any, **named: Any) -> Exchanged:
        watch.asked()
        answer = await exchange(*args, **named)
        watch.answered(answer)
        return answer

    store.exchange = timed_exchange  # type: ignore[method-assign]  # on this instance only
    store.another = lambda: watched(another(), watch)  # type: ignore[method-assign]
    return store


async def main(args: argparse.Namespace) -> None:
    logging.disable(logging.WARNING)  # that this server keeps nothing is known
    watch = Stopwatch()
    worker = Worker(watched(RedisStore(args.url), watch), {QUEUE: noop}, WorkerOptions(concurrency=args.concurrency))
    when_input_closes(worker.stop)
    calm_collector()  # as `bullpen worker` does
    await worker.run()
    say({"first_ns": watch.first_ns, "last_ns": watch.last_ns, "settled": watch.settled})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int, required=True)
    run(main(parser.parse_args()))
