"""What a process counts of the agents that work in it."""

from bullpen.observing import ModelCall, Observer, PoolSeen, TaskEnd, ToolUse
from bullpen.telemetry.registry import Bounded, Registry

CALLS_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
TOOLS_S = (0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600)
WAITS_FOR_SANDBOX_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
MAX_TOOLS = 100
_MICRO = 1_000_000


class AgentMetrics(Observer):
    """The part of `Metrics` that is about agents. No label names a tenant or a run."""

    def __init__(self, registry: Registry) -> None:
        self._tools = Bounded(MAX_TOOLS)
        self._pools: dict[str, PoolSeen] = {}
        self.model_calls = registry.counter(
            "bullpen_llm_calls_total", "Calls of models, by how they ended.", ("provider", "model", "outcome")
        )
        self.tokens = registry.counter(
            "bullpen_llm_tokens_total", "Tokens that models read or wrote.", ("model", "direction")
        )
        self.model_seconds = registry.histogram(
            "bullpen_llm_call_seconds", "From a call to the end of its answer.", ("provider", "model"), buckets=CALLS_S
        )
        self.tool_calls = registry.counter("bullpen_tool_calls_total", "Calls of tools by agents.", ("tool", "outcome"))
        self.tool_seconds = registry.histogram(
            "bullpen_tool_call_seconds", "How long a tool took.", ("tool",), buckets=TOOLS_S
        )
        self.tasks = registry.counter("bullpen_tasks_total", "Tasks of agents that ended.", ("kind", "state"))
        self.runs = registry.counter("bullpen_runs_total", "Runs of agents that ended.", ("state",))
        self.credits = registry.counter(
            "bullpen_credits_charged_total", "Credits that ended runs were charged.", ("kind",)
        )
        self.credits_reserved = registry.counter(
            "bullpen_credits_reserved_total", "Credits that were set aside for runs.", ("kind", "share")
        )
        self.credits_refunded = registry.counter(
            "bullpen_credits_refunded_total",
            "Credits that ended runs gave back, of those set aside.",
            ("kind", "reason"),
        )
        self.credits_overrun = registry.counter(
            "bullpen_credits_overrun_total", "Credits that calls cost above what was held for them."
        )
        self.sandboxes = registry.gauge("bullpen_sandboxes", "Sandboxes of this process.", ("state",))
        self.sandboxes_most = registry.gauge("bullpen_sandboxes_most", "How many its pools may have.")
        self.sandbox_wait = registry.histogram(
            "bullpen_sandbox_acquire_seconds", "How long a sandbox was waited for.", buckets=WAITS_FOR_SANDBOX_S
        )
        self.sandbox_timeouts = registry.counter(
            "bullpen_sandbox_timeouts_total", "Waits for a sandbox that ended without one."
        )

    def model_called(self, call: ModelCall) -> None:
        self.model_calls.inc(call.provider, call.model, call.outcome)
        self.model_seconds.observe(call.seconds, call.provider, call.model)
        self.tokens.inc(call.model, "input", by=call.input_tokens)
        self.tokens.inc(call.model, "output", by=call.output_tokens)

    def tool_used(self, use: ToolUse) -> None:
        tool = self._tools.of(use.tool)
        self.tool_calls.inc(tool, use.outcome)
        if use.outcome != "refused":
            self.tool_seconds.observe(use.seconds, tool)

    def task_ended(self, end: TaskEnd) -> None:
        self.tasks.inc(end.kind, end.state)
        if end.is_run:  # it pays for the tasks that it made: counted with them, they would count twice
            self.runs.inc(end.state)
            self.credits.inc(end.kind, by=end.micro_credits / _MICRO)
            self.credits_refunded.inc(end.kind, end.state, by=end.refunded / _MICRO)
            more = max(0, end.micro_credits + end.refunded - end.estimate)
            self.credits_reserved.inc(end.kind, "more", by=more / _MICRO)

    def credits_set_aside(self, kind: str, micro_credits: int) -> None:
        self.credits_reserved.inc(kind, "estimate", by=micro_credits / _MICRO)

    def overrun(self, micro_credits: int) -> None:
        self.credits_overrun.inc(by=micro_credits / _MICRO)

    def sandbox_asked(self, waited_s: float, *, is_lent: bool) -> None:
        if is_lent:
            self.sandbox_wait.observe(waited_s)
        else:
            self.sandbox_timeouts.inc()

    def pool_changed(self, seen: PoolSeen) -> None:
        if seen.most:
            self._pools[seen.pool] = seen
        else:
            self._pools.pop(seen.pool, None)
        pools = list(self._pools.values())
        self.sandboxes.set(sum(pool.warm for pool in pools), "warm")
        self.sandboxes.set(sum(pool.in_use for pool in pools), "in-use")
        self.sandboxes_most.set(sum(pool.most for pool in pools))
