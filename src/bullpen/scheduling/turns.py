"""Weighted fair turns: start-time fair queueing over the groups of a queue.

Each group has a virtual time, that of its next turn; the smallest is served, ties by name. A
turn adds 1/weight to it, so in the long run turns are taken in proportion to the weights. The
ring's present time is that of the last turn. Whoever comes to the ring starts there, or at its
own time where that is later: an idle group saves nothing up, and one that comes and goes with
each job cannot take a turn before its time either.
"""

import heapq
from collections.abc import Sequence

import msgspec


class Contender(msgspec.Struct):
    """A group that may give jobs now."""

    name: bytes
    virtual_time: float
    weight: int
    budget: int
    """How many it can give: jobs, free places under its cap, starts left in its window."""


class Plan(msgspec.Struct):
    turns: list[bytes]
    """Whose turn it is, one after the other."""
    present: float
    """The ring's time after the last of them."""


def plan_turns(ring: Sequence[Contender], slots: int, present: float) -> Plan:
    """Give out up to that many turns. Each contender's time moves on; the ring may be cut to as many as slots."""
    turns: list[bytes] = []
    heap = [(one.virtual_time, one.name, one) for one in ring if one.budget > 0]
    heapq.heapify(heap)
    while heap and len(turns) < slots:
        present, name, one = heap[0]
        turns.append(name)
        one.virtual_time += 1 / one.weight
        one.budget -= 1
        if one.budget > 0:
            heapq.heapreplace(heap, (one.virtual_time, name, one))
        else:
            heapq.heappop(heap)
    return Plan(turns, present)
