"""The process that runs handlers for a worker: one job at a time, until the worker hangs up.

python -m bullpen.worker.child <file descriptor of the socket>
"""

import os
import signal
import socket
import sys
import threading
from typing import Any

from bullpen.errors import JobCancelled, Postpone, RateLimited, Unrecoverable
from bullpen.job.spec import NewJob
from bullpen.job.words import storable
from bullpen.queue.payload import to_bytes
from bullpen.worker.context import Context
from bullpen.worker.desk import FixedDesk
from bullpen.worker.handlers import find_function
from bullpen.worker.judging import message_of, stack_of, told_by
from bullpen.worker.messages import (
    LENGTH,
    Begun,
    Done,
    FromProcess,
    LogLine,
    Progress,
    Raised,
    RunJob,
    Then,
    ToProcess,
    decode_to_process,
    frame,
)
from bullpen.worker.signals import when_parent_dies


class Line:
    """The socket to the worker; a thread reads it, so that a stop arrives while a handler runs."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._sending = threading.Lock()
        self._jobs: Mailbox = Mailbox()
        self.running: Context | None = None
        threading.Thread(target=self._read, name="worker line", daemon=True).start()

    def next_job(self) -> RunJob:
        return self._jobs.take()

    def send(self, message: FromProcess) -> None:
        with self._sending:
            self._socket.sendall(frame(message))

    def _read(self) -> None:
        while True:
            message = self._receive()
            if isinstance(message, RunJob):
                self._jobs.put(message)
            elif self.running is not None:
                self.running.mark_cancelled(message.reason)

    def _receive(self) -> ToProcess:
        (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
        return decode_to_process(self._exactly(length))

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                # The worker is gone, and with it the lease: what we do, and whatever we started, no longer counts.
                os.killpg(0, signal.SIGKILL)
            parts += part
        return bytes(parts)


class Mailbox:
    """Holds the one job that is next."""

    def __init__(self) -> None:
        self._full = threading.Semaphore(0)
        self._job: RunJob | None = None

    def put(self, job: RunJob) -> None:
        self._job = job
        self._full.release()

    def take(self) -> RunJob:
        self._full.acquire()
        assert self._job is not None
        return self._job


class LineReporter:
    def __init__(self, line: Line) -> None:
        self._line = line

    def log(self, line: str) -> None:
        self._line.send(LogLine(storable(str(line))))

    def progress(self, value: Any) -> None:
        self._line.send(Progress(to_bytes(value, what="progress")))

    def then(self, job: NewJob) -> None:
        self._line.send(Then(job))


def run_one(line: Line, job: RunJob) -> None:
    context = Context(job.job, job.data, FixedDesk(LineReporter(line)))
    line.running = context
    line.send(Begun())
    answer: FromProcess
    try:
        result = find_function(job.handler)(context)
        # How large it may be is the worker's to say.
        answer = Done(to_bytes(result, what="result", limit=sys.maxsize))
    except BaseException as error:  # noqa: BLE001 - told to the worker, who judges it
        answer = _describe(error)
    line.running = None
    line.send(answer)


def _describe(error: BaseException) -> Raised:
    retryable = False if isinstance(error, Unrecoverable) else told_by(error, "retryable")
    code, status = told_by(error, "code"), told_by(error, "status_code")
    if status is None:
        status = told_by(error, "status")
    return Raised(
        type=storable(type(error).__name__),
        message=message_of(error),
        stack=storable(stack_of(error)),
        retryable=retryable if isinstance(retryable, bool) else None,
        code=storable(code) if isinstance(code, str) else _number(code),
        status=_number(status),
        postpone_s=error.delay if isinstance(error, Postpone) else None,
        limited_s=error.delay if isinstance(error, RateLimited) else None,
        limits_queue=isinstance(error, RateLimited) and error.whole_queue,
        cancelled=isinstance(error, JobCancelled),
    )


def _number(told: object) -> int | None:
    """One that fits into a message."""
    return told if isinstance(told, int) and abs(told) < 2**63 else None


def _ignore_stops() -> None:
    """A terminal and systemd tell every process; when to stop is the worker's decision, which kills with SIGKILL."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not SIG_IGN: programs that a handler starts would inherit that, and could not be told to end.
        signal.signal(number, lambda *_: None)
        signal.siginterrupt(number, False)
    os.register_at_fork(after_in_child=_heed_stops)


def _heed_stops() -> None:
    """What a handler forks, such as a pool of `multiprocessing`, is ended by these."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main() -> None:
    when_parent_dies(signal.SIGKILL)
    _ignore_stops()
    line = Line(int(sys.argv[1]))
    while True:
        run_one(line, line.next_job())


if __name__ == "__main__":
    main()
