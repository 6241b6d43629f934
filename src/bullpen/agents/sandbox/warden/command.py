"""One command: its pipes, its limits, and how it ended."""

import os
import resource
import select
import signal
import subprocess
import time

from bullpen.agents.sandbox.warden.files import disk_is_full, files_in_use, inside
from bullpen.agents.sandbox.warden.processes import cpu_of, everyone, kill_everyone, memory_of, threads_of
from bullpen.agents.sandbox.warden.wire import CHUNK, Head, Refused, Wire

_TICK_S = 0.025


def run(wire: Wire, head: Head, stdin: bytes, bell: int) -> None:
    """Run a command to its end, whatever ends it."""
    try:
        command = Command(wire, head, stdin)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Refused("not-started", f"{head['argv'][0]}: {why}") from None
    due = time.monotonic() + _TICK_S
    while command.ended is None and command.status is None:
        command.turn(bell)
        command.reap()
        if time.monotonic() >= due:
            command.watch()
            due = time.monotonic() + _TICK_S
    command.finish()


class Command:
    def __init__(self, wire: Wire, head: Head, stdin: bytes) -> None:
        self.wire, self.id, self.limits = wire, head["id"], head["limits"]
        self.ended: str | None = None
        self.status: int | None = None
        self._stdin = memoryview(stdin)
        self._began = time.monotonic()
        self._cpu_before = cpu_of([])
        self._wrote = {"stdout": 0, "stderr": 0}
        self._child = subprocess.Popen(  # noqa: S603 - to run what it is told is the sandbox's purpose
            head["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=inside(head["cwd"]),
            env=head["env"],
            start_new_session=True,
            preexec_fn=self._limit,  # noqa: PLW1509 - there are no threads here
        )
        assert self._child.stdin
        assert self._child.stdout
        assert self._child.stderr
        self._feeding = self._child.stdin
        self._pipes = {self._child.stdout.fileno(): "stdout", self._child.stderr.fileno(): "stderr"}
        for fd in (*self._pipes, self._feeding.fileno()):
            os.set_blocking(fd, False)
        self._feed()

    def _limit(self) -> None:
        """In the child, before its program starts: what the kernel itself enforces."""
        most = self.limits
        for which, value in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NPROC, most["processes"] + 1),  # we are one of them
            (resource.RLIMIT_DATA, most["memory_bytes"]),
            (resource.RLIMIT_FSIZE, most["disk_bytes"]),
            (resource.RLIMIT_NOFILE, most["open_files"]),
            (resource.RLIMIT_MEMLOCK, 0),
        ):
            resource.setrlimit(which, (value, value))
        os.nice(5)  # so that the watch gets its turn
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    def turn(self, bell: int) -> None:
        """Wait a moment for anything to happen, and answer it."""
        feeding = [] if self._feeding.closed else [self._feeding.fileno()]
        ready, hungry, _ = select.select([self.wire.fd_in, bell, *self._pipes], feeding, [], _TICK_S)
        if hungry:
            self._feed()
        for fd in ready:
            if fd == self.wire.fd_in:
                message, _ = self.wire.receive()
                if message.get("do") == "kill":
                    self._end("killed")
            elif fd == bell:
                os.read(bell, CHUNK)
            else:
                self._take(fd)

    def _feed(self) -> None:
        """Hand over what the program takes of its standard input now; close it after the last."""
        try:
            while self._stdin:
                self._stdin = self._stdin[os.write(self._feeding.fileno(), self._stdin[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._stdin = memoryview(b"")  # it does not want the rest
        self._feeding.close()

    def _take(self, fd: int) -> bool:
        """Pass on what the program wrote; false if there is nothing now."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._pipes.pop(fd)
            return False
        name = self._pipes[fd]
        room = self.limits["output_bytes"] - self._wrote[name]
        self._wrote[name] += len(data)
        if room > 0:
            self.wire.send({"id": self.id, "part": name}, data[:room])
        if sum(self._wrote.values()) > self.limits["flood_bytes"]:
            self._end("output-limit")
        return True

    def _end(self, why: str) -> None:
        self.ended = self.ended or why

    def watch(self) -> None:
        """End it if it is over a limit that the kernel does not enforce for the whole of it."""
        processes = everyone()
        most = self.limits
        if time.monotonic() - self._began > most["timeout_s"]:
            self._end("timeout")
        if most["cpu_s"] is not None and cpu_of(processes) - self._cpu_before > most["cpu_s"]:
            self._end("cpu-time")
        if memory_of(processes, most["memory_bytes"]) > most["memory_bytes"]:
            self._end("out-of-memory")
        if threads_of(processes) > most["processes"]:
            self._end("processes")
        if most["files"] is not None and files_in_use() > most["files"]:
            self._end("disk-full")

    def reap(self) -> None:
        """Collect whatever ended; orphans come to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._child.pid:
                self.status = status

    def finish(self) -> None:
        """End what is left of the command, and tell how it went: nothing of it outlives it."""
        if self.status is None:
            os.kill(self._child.pid, signal.SIGKILL)
            self.status = os.waitpid(self._child.pid, 0)[1]
        self._child.returncode = os.waitstatus_to_exitcode(self.status)
        kill_everyone()
        for fd in list(self._pipes):
            while self._take(fd):
                pass
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            assert pipe
            pipe.close()
        self.wire.send({"id": self.id, "done": True, **self._outcome(self._child.returncode)})

    def _outcome(self, code: int) -> Head:
        ended = self.ended
        if ended is None:
            ended = "signal" if code < 0 else "disk-full" if code and disk_is_full() else "exit"
        cut = {name + "_cut": wrote > self.limits["output_bytes"] for name, wrote in self._wrote.items()}
        spent = {"seconds": time.monotonic() - self._began, "cpu_seconds": cpu_of([]) - self._cpu_before}
        return {"ended": ended, "code": code, **cut, **spent}
