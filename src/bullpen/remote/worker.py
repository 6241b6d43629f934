"""A worker on a machine that does not reach the store: the usual worker, with a server in place of the store."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from bullpen.errors import BadHandler
from bullpen.job.record import JobRecord
from bullpen.remote.address import server_address
from bullpen.worker.handlers import Handlers
from bullpen.worker.options import WorkerOptions
from bullpen.worker.worker import Worker

try:
    from bullpen.remote.store import RemoteStore
except ImportError as error:
    raise BadHandler("a remote worker needs more: pip install 'bullpen[remote]'") from error


class RemoteWorker(Worker):
    """Runs the jobs of one or more queues of a server in this process, with the handlers of any worker.

    worker = RemoteWorker("https://bullpen.example.com", {"mail": send_mail}, token_file="token")
    await worker.run()

    The token is an API key of the role `worker`; without one here, the environment has it (`BULLPEN_TOKEN`, or
    `BULLPEN_TOKEN_FILE`). `ctx.then`, children and `ctx.signal` are not for remote workers; limits of queues
    are declared beside the store.
    """

    def __init__(
        self,
        server: str | None,
        handlers: Handlers,
        options: WorkerOptions | None = None,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca: str | Path | None = None,
        allow_http: bool = False,
        on_failed_unrun: Callable[[JobRecord], None] | None = None,
    ) -> None:
        address = server_address(server, token=token, token_file=token_file, ca=ca, allow_http=allow_http)
        store = RemoteStore(address)
        # What a pen declares for its queues is put into the store by whoever reaches it.
        options = dataclasses.replace(options or WorkerOptions(), queue_limits={})
        super().__init__(store, handlers, options, clock=store.clock, on_failed_unrun=on_failed_unrun)
