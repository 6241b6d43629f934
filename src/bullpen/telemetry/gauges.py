"""What is looked up when someone asks, rather than counted as it happens."""

from collections.abc import Iterable, Mapping, Sequence

from bullpen.job.state import State
from bullpen.stores.base import Counts, WorkerInfo, WorkerState
from bullpen.telemetry.checks import Look, QueueLook
from bullpen.telemetry.registry import MAX_SERIES, OTHER, Registry

_COUNTED = tuple(state.replace("-", "_") for state in State)
"""The states, as `Counts` has them."""
MAX_QUEUES = MAX_SERIES // len(State)
"""So many have series of their own, the one for all others included."""


class StoreGauges:
    """Of the store and the queues that are served: each process that serves them shows the same.

    Of more than `MAX_QUEUES` queues the last by name are told together, as one that is named `other`.
    """

    def __init__(self, registry: Registry) -> None:
        self.up = registry.gauge("bullpen_store_up", "Whether the store answered.")
        self.latency = registry.gauge("bullpen_store_latency_seconds", "How long the store took to answer.")
        self.jobs = registry.gauge("bullpen_queue_jobs", "Jobs in each state.", ("queue", "state"))
        self.paused = registry.gauge("bullpen_queue_paused", "Whether the queue is paused.", ("queue",))
        self.oldest = registry.gauge(
            "bullpen_queue_oldest_waiting_seconds", "For how long the next job in line could have run.", ("queue",)
        )
        self.left_out = registry.gauge("bullpen_queues_left_out", "Queues that are told together, as other.")
        self.workers = registry.gauge("bullpen_workers", "Workers that are registered, by state.", ("state",))

    def show(self, look: Look) -> None:
        for gauge in (self.latency, self.jobs, self.paused, self.oldest, self.left_out, self.workers):
            gauge.clear()  # no number at all is better than one of long ago
        self.up.set(0 if look.error else 1)
        if look.error:
            return
        self.latency.set(look.took_ms / 1000)
        shown = _bounded(look.queues)
        self.left_out.set(len(look.queues.keys() - shown.keys()))
        for name, queue in shown.items():
            for state, counted in zip(State, _COUNTED, strict=True):
                self.jobs.set(getattr(queue.counts, counted), name, state)
            self.paused.set(queue.counts.paused, name)
            self.oldest.set((queue.oldest_ms or 0) / 1000, name)
        for standing in WorkerState:
            self.workers.set(sum(worker.state == standing for worker in look.workers), standing)


def _bounded(queues: Mapping[str, QueueLook]) -> Mapping[str, QueueLook]:
    """All of them, or the first by name and what the others come to."""
    if len(queues) <= MAX_QUEUES:
        return queues
    own = sorted(queues.keys() - {OTHER})[: MAX_QUEUES - 1]
    others = [queues[name] for name in queues.keys() - set(own)]
    return {name: queues[name] for name in own} | {OTHER: _together(others)}


def _together(queues: Sequence[QueueLook]) -> QueueLook:
    """Jobs are summed; of waits it is the longest, and one that is paused is enough."""
    summed = {name: sum(getattr(queue.counts, name) for queue in queues) for name in _COUNTED}
    counts = Counts(**summed, paused=any(queue.counts.paused for queue in queues))
    return QueueLook(counts, max(queue.oldest_ms or 0 for queue in queues))


class WorkerGauges:
    """Of the worker in this process."""

    def __init__(self, registry: Registry) -> None:
        self.info = registry.gauge("bullpen_worker_info", "Which worker this is.", ("worker", "version"))
        self.ready = registry.gauge("bullpen_worker_ready", "Whether it takes jobs.")
        self.slots = registry.gauge("bullpen_worker_slots", "Jobs that it may run at once.", ("queue",))
        self.busy = registry.gauge("bullpen_worker_slots_busy", "Jobs that it runs.", ("queue",))
        self.stuck = registry.gauge(
            "bullpen_worker_jobs_stuck", "Handlers that were told to stop and go on.", ("queue",)
        )
        self.silent = registry.gauge("bullpen_worker_loop_silent_seconds", "For how long its event loop is held up.")

    def show(self, info: WorkerInfo, silent_ms: int) -> None:
        from importlib.metadata import version  # slow to import, and asked for here only

        self.info.set(1, info.name, version("bullpen"))
        self.ready.set(info.state in (WorkerState.READY, WorkerState.PROCESSING))
        for queue, slots in info.queues.items():
            self.slots.set(slots, queue)
            self.busy.set(sum(ref.queue == queue for ref in info.running), queue)
            self.stuck.set(sum(ref.queue == queue for ref in info.stuck), queue)
        self.silent.set(silent_ms / 1000)


class ProviderGauges:
    """Of the records: how providers of models are doing, as whoever asked them last found."""

    def __init__(self, registry: Registry) -> None:
        self.health = registry.gauge(
            "bullpen_provider_health", "1 for the state that a provider of models is in.", ("provider", "state")
        )

    def show(self, provider: str, state: str, states: Iterable[str]) -> None:
        for one in states:
            self.health.set(one == state, provider, one)


class RunGauges:
    """Of the records: what is told of runs of agents that are not over."""

    def __init__(self, registry: Registry) -> None:
        self.runs = registry.gauge("bullpen_runs_under_way", "Runs of agents that are not over, by state.", ("state",))
        self.tasks = registry.gauge("bullpen_tasks_under_way", "The same of their tasks.", ("state",))

    def show(self, runs: Mapping[str, int], tasks: Mapping[str, int]) -> None:
        for gauge, counts in ((self.runs, runs), (self.tasks, tasks)):
            for state, count in counts.items():
                gauge.set(count, state)


class RecordsGauges:
    """Of the records: what waits to become a job, and how old lists may be."""

    def __init__(self, registry: Registry) -> None:
        self.pending = registry.gauge("bullpen_outbox_pending", "Rows of the outbox whose job is not added yet.")
        self.problems = registry.gauge("bullpen_outbox_problems", "Rows of the outbox that a person has to decide on.")
        self.behind = registry.gauge(
            "bullpen_read_model_behind_seconds", "How long ago the read model last knew everything of each queue."
        )

    def show(self, pending: int, problems: int, behind_ms: int | None) -> None:
        """`behind_ms` is None as long as some queue was never read whole."""
        self.pending.set(pending)
        self.problems.set(problems)
        if behind_ms is not None:
            self.behind.set(behind_ms / 1000)
