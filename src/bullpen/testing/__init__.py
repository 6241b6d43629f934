"""For users and for ourselves: a manual clock, draining, assertions, contexts, and the conformance kit of stores."""

from bullpen.testing.asserting import Queued, assert_not_queued, assert_queued, queued
from bullpen.testing.clock import ManualClock
from bullpen.testing.contexts import RecordingContext, test_context
from bullpen.testing.draining import Drained, Ran, run_until_empty

__all__ = [
    "Drained",
    "ManualClock",
    "Queued",
    "Ran",
    "RecordingContext",
    "assert_not_queued",
    "assert_queued",
    "queued",
    "run_until_empty",
    "test_context",
]
