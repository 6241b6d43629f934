"""A supervisor that heeds signals, for tests: `python -m tests.worker.supervising module:make_worker`."""

import asyncio
import sys

from bullpen import Supervisor

asyncio.run(Supervisor(sys.argv[1]).run(signals=True))
