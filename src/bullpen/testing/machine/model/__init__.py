"""What a store promises, as a small model: dictionaries, one job at a time, no index, no disk.

It has the verbs of `Store` without `async` and without requests; the machine puts the same
questions to both. Some things are a store's own choice, and the model is told of them before
it is asked: the ids that the store gives, and how it orders jobs that ended in the same
millisecond.

    jobs ─ families ─ adding ─ ending ─┬─ grouping ─ working ─ rescuing ─┬─ Model
                                       ├─ steering ──────────────────────┤
                                       ├─ scheduling ────────────────────┤
                                       └─ journaling ────────────────────┘
"""

from bullpen.testing.machine.model.jobs import ModelJob
from bullpen.testing.machine.model.journaling import Journaling
from bullpen.testing.machine.model.rescuing import Rescuing
from bullpen.testing.machine.model.scheduling import Scheduling
from bullpen.testing.machine.model.steering import Steering

__all__ = ["Model", "ModelJob"]


class Model(Rescuing, Steering, Scheduling, Journaling):
    """All that can be asked of it."""
