"""The verbs that the Redis store does not have yet: each says so when it is called."""
# ruff: noqa: ARG002 - the parameters are the contract's

from collections.abc import Sequence
from typing import NoReturn

from bullpen.job.record import CrashKind, CrashLimits, JobRef
from bullpen.job.state import State
from bullpen.stores.base import Cancellation, JobPage, LogPage, Notice, Rescued, WorkerInfo


class VerbsToCome:
    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        _refuse("notices")

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:
        _refuse("rescue")

    async def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> Rescued:
        _refuse("report_crash")

    async def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        _refuse("cancel")

    async def retry(self, ref: JobRef) -> None:
        _refuse("retry")

    async def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        _refuse("retry_all")

    async def promote(self, ref: JobRef) -> None:
        _refuse("promote")

    async def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        _refuse("change_delay")

    async def change_priority(self, ref: JobRef, priority: int) -> None:
        _refuse("change_priority")

    async def remove(self, ref: JobRef) -> None:
        _refuse("remove")

    async def update_data(self, ref: JobRef, data: bytes) -> None:
        _refuse("update_data")

    async def set_progress(self, ref: JobRef, progress: bytes) -> None:
        _refuse("set_progress")

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        _refuse("add_log")

    async def drain(self, queue: str, *, delayed: bool) -> int:
        _refuse("drain")

    async def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        _refuse("clean")

    async def obliterate(self, queue: str, *, force: bool) -> None:
        _refuse("obliterate")

    async def jobs(
        self, queue: str, state: State, *, limit: int, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        _refuse("jobs")

    async def logs(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> LogPage:
        _refuse("logs")

    async def oldest_waiting_ms(self, queue: str) -> int | None:
        _refuse("oldest_waiting_ms")

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        _refuse("beat")

    async def workers(self) -> Sequence[WorkerInfo]:
        _refuse("workers")


def _refuse(verb: str) -> NoReturn:
    raise NotImplementedError(f"the Redis store has no {verb} yet; the SQLite store has")
