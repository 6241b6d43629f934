"""What surrounds a loop: how it may ask, what its tools are given, and who is told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bullpen.agents.llm.deltas import Delta
from bullpen.agents.loop.finishing import Also
from bullpen.agents.loop.words import LoopLimits
from bullpen.agents.tools.tool import ToolContext
from bullpen.observing import Observers
from bullpen.records.runs.words import NewProgress

Saves = Callable[[int], Awaitable[Also | None]]
"""Saves the workspace as it is after the step at this place; what is to become true with the step's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions:
    limits: LoopLimits = field(default_factory=LoopLimits)
    temperature: float | None = None
    context: ToolContext | None = None
    """What each call of a tool is given; without it, the run's name alone."""
    saves: Saves | None = None
    """Saves what the run's tools work on, before what they answered is on record."""
    on_delta: Callable[[Delta], None] | None = None
    """Takes a model's words as they come."""
    before_finish: Callable[[], Awaitable[list[NewProgress]]] | None = None
    """What is still to be told of an answer before it is said to be whole."""
    observers: Observers = field(default_factory=Observers)
