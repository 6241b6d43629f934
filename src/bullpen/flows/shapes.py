"""The usual shapes: a chain, a group with a join. Each is a tree, and nothing else."""

from collections.abc import Sequence

import msgspec

from bullpen.errors import BadOption
from bullpen.job.spec import NewJob, OnFailure


def chain(*steps: NewJob) -> NewJob:
    """Each step runs after the one before it, whose result it finds with `await ctx.previous()`.

    A step that fails for good fails all that come after it, unless its own `on_failure` says
    otherwise. The last step stands for the whole: add that, and await its result.
    """
    if not steps:
        raise BadOption("chain: at least one step")
    whole = _prepared(steps[0], "chain")
    for step in steps[1:]:
        if _prepared(step, "chain").children:
            raise BadOption(f"chain: {step.name!r} has children, which would not wait for the step before it")
        whole = with_children(step, [_failing_parent(whole)])
    return whole


def group(jobs: Sequence[NewJob], *, then: NewJob) -> NewJob:
    """All of these run side by side, and `then` after the last of them, with `await ctx.child_results()`.

    One that fails for good fails `then`, unless its own `on_failure` says otherwise.
    """
    return with_children(then, [_failing_parent(_prepared(job, "group")) for job in jobs])


def with_children(parent: NewJob, children: Sequence[NewJob]) -> NewJob:
    """The same job with these children beside those that it has."""
    prepared = tuple(_prepared(child, "children") for child in children)
    return msgspec.structs.replace(_prepared(parent, "parent"), children=(*parent.children, *prepared))


def _failing_parent(job: NewJob) -> NewJob:
    if job.spec.on_failure is not None:
        return job
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, on_failure=OnFailure.FAIL_PARENT))


def _prepared(job: object, where: str) -> NewJob:
    if not isinstance(job, NewJob):
        raise BadOption(f"{where}: prepared jobs, as `prepare(…)` gives them, not {job!r}")
    return job
