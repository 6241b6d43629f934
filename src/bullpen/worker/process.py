"""One supervised worker process: `python -m bullpen.worker.process module:make_worker`."""

import logging
import os
import sys

from bullpen.worker.runner import quick_runner
from bullpen.worker.supervised import EXIT_REPLACE, Ended
from bullpen.worker.supervisor import make_worker_from


async def _main(factory: str) -> int:
    ended = await make_worker_from(factory).run(signals=True)
    return EXIT_REPLACE if ended == Ended.RECYCLED else 0


def main() -> None:
    code = quick_runner().run(_main(sys.argv[1]))
    # Handlers that were handed back may still run in threads: they must not keep the process.
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
