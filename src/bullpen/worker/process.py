"""One supervised worker process: `python -m bullpen.worker.process module:make_worker`."""

import signal
import sys

from bullpen.worker.leaving import leave, run_alone
from bullpen.worker.runner import quick_runner
from bullpen.worker.signals import when_parent_dies
from bullpen.worker.supervised import EXIT_REPLACE, Ended, is_supervised
from bullpen.worker.supervisor import make_worker_from


async def _main(factory: str) -> int:
    ended = await run_alone(make_worker_from(factory))
    return EXIT_REPLACE if ended == Ended.RECYCLED else 0


def main() -> None:
    if is_supervised():
        when_parent_dies(signal.SIGTERM)  # nobody would pass on a stop, nor start another in its place
    leave(quick_runner().run(_main(sys.argv[1])))


if __name__ == "__main__":
    main()
