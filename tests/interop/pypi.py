"""BullMQ for Python at the tests' command: the protocol of bullmq.mjs, word for word.

python -m tests.interop.pypi <redis port>
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import bullmq  # type: ignore[import-untyped]  # it has no types

EVENTS = (
    "active", "added", "cleaned", "completed", "deduplicated", "delayed", "drained", "duplicated", "failed",
    "paused", "progress", "removed", "resumed", "retries-exhausted", "stalled", "waiting",
)  # fmt: skip
_TOLD = (
    "id", "name", "data", "opts", "returnvalue", "failedReason", "stacktrace", "progress", "priority", "delay",
    "attemptsMade", "attemptsStarted", "stalledCounter", "deferredFailure",
)  # fmt: skip
Asked = dict[str, Any]


def say(message: Asked) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Place:
    """What was opened for one prefix, to be closed with its test."""

    def __init__(self, port: int, prefix: str) -> None:
        self.prefix = prefix
        self._given = {"connection": {"host": "127.0.0.1", "port": port}, "prefix": prefix}
        self._queues: dict[str, Any] = {}
        self._workers: list[Any] = []
        self._listeners: list[Any] = []
        self._held: list[asyncio.Event] = []
        self._flows: Any = None

    def tell(self, queue: str, source: str, event: str, **more: Any) -> None:
        say({"prefix": self.prefix, "queue": queue, "source": source, "event": event, **more})

    def queue(self, name: str) -> Any:
        if name not in self._queues:
            self._queues[name] = bullmq.Queue(name, dict(self._given))
        return self._queues[name]

    def flows(self) -> Any:
        if self._flows is None:
            self._flows = bullmq.FlowProducer(dict(self._given))
        return self._flows

    async def job(self, asked: Asked) -> Any:
        job = await self.queue(asked["queue"]).getJob(asked["id"])
        if job is None:
            raise LookupError(f"no job {asked['id']}")
        return job

    def release(self) -> None:
        for held in self._held:
            held.set()
        self._held.clear()

    async def handle(self, job: Any, queue: str) -> Asked:
        """What the handler does is told by the job's data: hold, speak, fail, or return what was sent."""
        data = job.data
        for line in data.get("logs", ()):
            await job.log(line)
        if "progress" in data:
            await job.updateProgress(data["progress"])
        if data.get("hold"):
            released = asyncio.Event()
            self._held.append(released)
            self.tell(queue, "worker", "holding", id=job.id)
            await released.wait()
        if data.get("gather"):
            values: Asked = await job.getChildrenValues()
            return values
        if "unrecoverable" in data:
            raise bullmq.UnrecoverableError(data["unrecoverable"])
        if "fail" in data and job.attemptsMade < data.get("times", float("inf")):
            raise ValueError(data["fail"])
        return {"echo": data, "name": job.name, "attempt": job.attemptsMade + 1}

    async def work(self, queue: str, options: Asked) -> None:
        async def process(job: Any, _token: str) -> Asked:
            return await self.handle(job, queue)

        # An idle worker sleeps until it is woken: whoever adds a job must leave the marker that does it.
        worker = bullmq.Worker(queue, process, self._given | {"drainDelay": 3600} | options)
        worker.on("completed", lambda job, _result: self.tell(queue, "worker", "completed", id=job.id))
        worker.on("failed", lambda job, error: self.tell(queue, "worker", "failed", id=job.id, message=str(error)))
        worker.on("stalled", lambda job_id: self.tell(queue, "worker", "stalled", id=job_id))
        worker.on("error", lambda error, *_: self.tell(queue, "worker", "error", message=str(error)))
        self._workers.append(worker)

    async def rest(self) -> None:
        """Its workers take no more jobs; those of the test have ended."""
        while self._workers:
            # By force, since a close that comes just after a failure may wait for ever in this client.
            await self._workers.pop().close(force=True)

    async def listen(self, queue: str) -> None:
        listener = bullmq.QueueEvents(queue, {**self._given, "lastEventId": "0-0"})
        for event in EVENTS:
            # `drained` comes with its number alone.
            listener.on(
                event,
                lambda args, *_, event=event: self.tell(
                    queue, "events", event, args=args if isinstance(args, dict) else {}
                ),
            )
        self._listeners.append(listener)

    async def close(self) -> None:
        self.release()
        await self.rest()
        for listener in self._listeners:
            await listener.close()
        for queue in self._queues.values():
            await queue.close()
        if self._flows is not None:
            await self._flows.close()


async def _told(job: Any) -> Asked:
    return {name: getattr(job, name) for name in _TOLD} | {"state": await job.getState()}


async def _job(at: Place, asked: Asked) -> Any:
    job = await at.queue(asked["queue"]).getJob(asked["id"])
    return None if job is None else await _told(job)


async def _add(at: Place, asked: Asked) -> Any:
    return (await at.queue(asked["queue"]).add(asked["name"], asked["data"], asked.get("opts", {}))).id


async def _add_bulk(at: Place, asked: Asked) -> Any:
    return [job.id for job in await at.queue(asked["queue"]).addBulk(asked["jobs"])]


def _tree_ids(node: Asked) -> Asked:
    return {"id": node["job"].id, "children": [_tree_ids(child) for child in node.get("children", [])]}


async def _flow(at: Place, asked: Asked) -> Any:
    return _tree_ids(await at.flows().add(asked["tree"]))


async def _ids(at: Place, asked: Asked) -> Any:
    return [job.id for job in await at.queue(asked["queue"]).getJobs([asked["state"]], 0, -1, asked["asc"])]


async def _logs(at: Place, asked: Asked) -> Any:
    return (await at.queue(asked["queue"]).getJobLogs(asked["id"]))["logs"]


async def _workers(at: Place, asked: Asked) -> Any:
    return [worker["rawname"] for worker in await at.queue(asked["queue"]).get_workers()]


async def _change_priority(at: Place, asked: Asked) -> None:
    await (await at.job(asked)).changePriority({"priority": asked["priority"]})


async def _upsert_scheduler(at: Place, asked: Asked) -> Any:
    wanted = (asked["id"], asked["repeat"], asked["name"], asked["data"], asked["opts"])
    return (await at.queue(asked["queue"]).upsertJobScheduler(*wanted)).id


async def _schedulers(at: Place, asked: Asked) -> Any:
    return await at.queue(asked["queue"]).getJobSchedulers(0, -1, True)


async def _has(_: Place, asked: Asked) -> bool:
    owner, _dot, method = asked["path"].partition(".")
    return callable(getattr(getattr(bullmq, owner, None), method, None))


async def _release(at: Place, _: Asked) -> None:
    at.release()


def _of_queue(method: str, *words: str) -> Callable[[Place, Asked], Awaitable[Any]]:
    async def call(at: Place, asked: Asked) -> Any:
        return await getattr(at.queue(asked["queue"]), method)(*[asked[word] for word in words])

    return call


def _of_job(method: str, *words: str) -> Callable[[Place, Asked], Awaitable[Any]]:
    async def call(at: Place, asked: Asked) -> Any:
        return await getattr(await at.job(asked), method)(*[asked[word] for word in words])

    return call


VERBS: dict[str, Callable[[Place, Asked], Awaitable[Any]]] = {
    "add": _add,
    "addBulk": _add_bulk,
    "flow": _flow,
    "childrenValues": _of_job("getChildrenValues"),
    "job": _job,
    "ids": _ids,
    "counts": _of_queue("getJobCounts"),
    "logs": _logs,
    "workers": _workers,
    "subject": _of_queue("getDeduplicationJobId", "id"),
    "pause": _of_queue("pause"),
    "resume": _of_queue("resume"),
    "isPaused": _of_queue("isPaused"),
    "limitActive": _of_queue("setGlobalConcurrency", "most"),
    "limitRate": _of_queue("setGlobalRateLimit", "most", "duration"),
    "drain": _of_queue("drain", "delayed"),
    "clean": _of_queue("clean", "grace", "limit", "state"),
    "obliterate": _of_queue("obliterate", "force"),
    "upsertScheduler": _upsert_scheduler,
    "schedulers": _schedulers,
    "removeScheduler": _of_queue("removeJobScheduler", "id"),
    "promote": _of_job("promote"),
    "retry": _of_job("retry", "state"),
    "remove": _of_job("remove"),
    "log": _of_job("log", "line"),
    "progress": _of_job("updateProgress", "value"),
    "updateData": _of_job("updateData", "data"),
    "changePriority": _change_priority,
    "work": lambda at, asked: at.work(asked["queue"], asked.get("options", {})),
    "rest": lambda at, _: at.rest(),
    "release": _release,
    "listen": lambda at, asked: at.listen(asked["queue"]),
    "has": _has,
}


class Servant:
    def __init__(self, port: int) -> None:
        self._port = port
        self._places: dict[str, Place] = {}

    async def serve(self) -> None:
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        say({"event": "ready"})
        async with asyncio.TaskGroup() as calls:
            async for line in lines:
                calls.create_task(self._carry_out(json.loads(line)))
        for place in self._places.values():
            await place.close()

    async def _carry_out(self, asked: Asked) -> None:
        call, verb, prefix = asked.pop("call"), asked.pop("verb"), asked.pop("prefix")
        try:
            place = self._places.setdefault(prefix, Place(self._port, prefix))
            if verb == "close":
                await self._places.pop(prefix).close()
                say({"call": call, "answer": None})
            else:
                say({"call": call, "answer": await VERBS[verb](place, asked)})
        except Exception as error:
            say({"call": call, "error": str(error) or type(error).__name__})


if __name__ == "__main__":
    asyncio.run(Servant(int(sys.argv[1])).serve())
