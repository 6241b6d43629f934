"""The states of a job, and the moves between them that are legal.

    add ──▶ waiting │ prioritized ──claim──▶ active ──▶ completed
     └────▶ delayed ──due──▶ ▲   ▲             │──▶ failed
                             │   └─retry─────  │──▶ delayed      (retry with backoff, postponed)
                             └──released─────────── (handed back, stalled)

    add with children ──▶ waiting-children ──none is pending──▶ waiting │ prioritized │ delayed
                                 ▲───await children─── active

A job waits as `waiting` when it has no priority, else as `prioritized`; all waiting jobs run
before any prioritized one. Pausing is a property of the queue, not of its jobs.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a job stands; it stands in exactly one."""

    WAITING = "waiting"
    PRIORITIZED = "prioritized"
    DELAYED = "delayed"
    ACTIVE = "active"
    WAITING_CHILDREN = "waiting-children"
    COMPLETED = "completed"
    FAILED = "failed"


READY = frozenset({State.WAITING, State.PRIORITIZED})
FINISHED = frozenset({State.COMPLETED, State.FAILED})

_PENDING = READY | {State.DELAYED}

LEGAL_MOVES: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.ACTIVE, State.PRIORITIZED, State.FAILED}),
    State.PRIORITIZED: frozenset({State.ACTIVE, State.WAITING, State.FAILED}),
    State.DELAYED: READY | {State.FAILED},
    State.ACTIVE: _PENDING | FINISHED | {State.WAITING_CHILDREN},
    State.WAITING_CHILDREN: _PENDING | {State.FAILED},
    State.COMPLETED: READY | {State.WAITING_CHILDREN},
    State.FAILED: READY | {State.WAITING_CHILDREN},
}


def may_move(origin: State, target: State) -> bool:
    return target in LEGAL_MOVES[origin]
