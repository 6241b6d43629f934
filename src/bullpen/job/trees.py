"""Trees of new jobs: what is wrong with one, and one as a list in which a parent stands before its children."""

import itertools
import secrets
from collections.abc import Sequence

import msgspec

from bullpen.errors import BadOption
from bullpen.job.names import is_generated_id
from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob

MAX_DEPTH = 100
"""Levels of a tree: more is most likely a mistake, and every level is a step in a recursion somewhere."""


class Node(msgspec.Struct, frozen=True):
    job: NewJob
    parent: int | None
    """Its parent's place in the list; None for the roots."""


def flatten(jobs: Sequence[NewJob]) -> list[Node]:
    """The roots and all below them: each root with its own before the next, each parent before its children."""
    nodes: list[Node] = []
    ahead: list[tuple[NewJob, int | None]] = [(job, None) for job in reversed(jobs)]
    while ahead:
        job, parent = ahead.pop()
        place = len(nodes)
        nodes.append(Node(job, parent))
        if job.children:
            ahead.extend((child, place) for child in reversed(job.children))
    return nodes


def with_ids(tree: NewJob) -> NewJob:
    """The same tree with an id for each job below the root that has none.

    By them the children of a job have an order that every store can tell, whatever their queues.
    """
    if not tree.children:
        return tree
    token = secrets.token_hex(8)
    numbers = itertools.count(1)

    def named(job: NewJob) -> NewJob:
        own_id = job.id or f"f-{token}-{next(numbers):05}"
        return msgspec.structs.replace(job, id=own_id, children=tuple(map(named, job.children)))

    return msgspec.structs.replace(tree, children=tuple(map(named, tree.children)))


def natural_order(ref: JobRef) -> tuple[int, str, str]:
    """Sorts the children of one job as they were added: their ids count up, as numbers or with leading zeros."""
    return (int(ref.id), "", ref.queue) if is_generated_id(ref.id) else (0, ref.id, ref.queue)


def check_trees(jobs: Sequence[NewJob]) -> None:
    """BadOption for trees that no store takes: too deep, deduplicated, or with one id in two places."""
    if any(job.children for job in jobs):
        nodes = flatten(jobs)
        _check_depth(nodes)
        _check_dedup(nodes)
        _check_ids(nodes)


def check_children(jobs: Sequence[NewJob]) -> None:
    """The same for jobs that are to be children of one that is there."""
    nodes = flatten(jobs)
    _check_depth(nodes)
    for node in nodes:
        if node.job.spec.dedup is not None:
            raise _deduplicated(node.job)
    _check_ids(nodes, all_related=True)


def _check_depth(nodes: Sequence[Node]) -> None:
    depths: list[int] = []
    for node in nodes:
        depths.append(1 if node.parent is None else depths[node.parent] + 1)
        if depths[-1] > MAX_DEPTH:
            raise BadOption(f"children: the tree is more than {MAX_DEPTH} levels deep at {node.job.name!r}")


def _check_dedup(nodes: Sequence[Node]) -> None:
    for node in nodes:
        if node.job.spec.dedup is not None and _is_related(node):
            raise _deduplicated(node.job)


def _deduplicated(job: NewJob) -> BadOption:
    # Another job might stand for it, and whose child that is cannot be said.
    return BadOption(f"dedup: {job.name!r} has a parent or children, so it cannot be deduplicated; give it an id")


def _check_ids(nodes: Sequence[Node], *, all_related: bool = False) -> None:
    """A job that is its own descendant, or the child of two, shows as an id that is there twice."""
    seen: dict[tuple[str, str], bool] = {}
    for node in nodes:
        if node.job.id is None:
            continue
        name = node.job.queue, node.job.id
        related = all_related or _is_related(node)
        if name in seen and (related or seen[name]):
            raise BadOption(f"id: {node.job.id!r} of queue {node.job.queue!r} is more than once in a tree")
        seen[name] = related


def _is_related(node: Node) -> bool:
    return node.parent is not None or bool(node.job.children)
