"""A Hypothesis state machine that puts the same questions to a store and to the model.

    TestMyStore = store_machine(my_place).TestCase
    TestMyStore.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)

Every rule asks both and compares the answers; after every step all that the store shows of
its jobs must be what the model has: every job is in exactly one place.

    walk ─ checks ─┬─ adding ─ working ─ requesting ─┬─ StoreMachine
                   ├─ rescuing ──────────────────────┤
                   ├─ steering ──────────────────────┤
                   └─ scheduling ────────────────────┘
                   └─ journaling ────────────────────┘
"""

from bullpen.testing.machine.journaling import Journaling
from bullpen.testing.machine.requesting import Requesting
from bullpen.testing.machine.rescuing import Rescuing
from bullpen.testing.machine.scheduling import Scheduling
from bullpen.testing.machine.steering import Steering
from bullpen.testing.machine.walk import Place

__all__ = ["Place", "StoreMachine", "store_machine"]


class StoreMachine(Requesting, Rescuing, Steering, Scheduling, Journaling):
    """All rules, on one walk."""


def store_machine(place: Place) -> type[StoreMachine]:
    """The machine for the stores of this place; its `TestCase` is for pytest."""
    return type("StoreMachineHere", (StoreMachine,), {"place": staticmethod(place)})
