"""The table of legal moves."""

from itertools import product

import pytest

from bullpen import State
from bullpen.job.state import FINISHED, LEGAL_MOVES, READY, may_move


def _reachable(origin: State) -> set[State]:
    found: set[State] = set()
    waiting = [origin]
    while waiting:
        fresh = LEGAL_MOVES[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return found


def test_the_table_has_a_line_for_every_state() -> None:
    assert LEGAL_MOVES.keys() == set(State)
    assert all(targets <= set(State) for targets in LEGAL_MOVES.values())


@pytest.mark.parametrize("origin, target", list(product(State, State)))
def test_every_pair_has_an_answer(origin: State, target: State) -> None:
    assert may_move(origin, target) is (target in LEGAL_MOVES[origin])


@pytest.mark.parametrize("state", list(State))
def test_no_state_is_a_dead_end_or_out_of_reach(state: State) -> None:
    """From anywhere a job can end, and from a new job's places it can get anywhere."""
    assert _reachable(state) >= FINISHED
    assert state in _reachable(State.WAITING)
    assert state in _reachable(State.DELAYED)


@pytest.mark.parametrize("state", list(State))
def test_a_move_goes_somewhere_else(state: State) -> None:
    assert not may_move(state, state)


@pytest.mark.parametrize("origin, target", [(state, State.COMPLETED) for state in State if state != State.ACTIVE])
def test_only_what_ran_can_complete(origin: State, target: State) -> None:
    assert not may_move(origin, target)


@pytest.mark.parametrize("state", list(State))
def test_only_what_waits_in_line_can_start(state: State) -> None:
    assert may_move(state, State.ACTIVE) is (state in READY)


@pytest.mark.parametrize("state", sorted(FINISHED))
def test_an_ended_job_can_only_be_retried(state: State) -> None:
    assert LEGAL_MOVES[state] == READY | {State.WAITING_CHILDREN}
