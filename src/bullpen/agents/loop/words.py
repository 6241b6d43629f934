"""What a loop may use, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from bullpen.agents.llm.words import Usage
from bullpen.errors import BadOption


class Stop(StrEnum):
    """Why a loop ended."""

    ANSWER = "answer"
    MAX_STEPS = "max_steps"
    MAX_TOOL_CALLS = "max_tool_calls"
    MAX_TOKENS = "max_tokens"
    """Its last answer was cut off there, or all of its answers together came to it."""
    CREDITS = "credits"
    """The next call could cost more than there is: it was not made."""
    TIMEOUT = "timeout"
    CANCELLED = "cancel"
    """Somebody asked for it."""
    ERROR = "error"
    """It could not go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLimits:
    """Asked before each call of a model."""

    steps: int = 50
    """Calls of a model."""
    tool_calls: int = 200
    """Those that a step asks for beyond it are refused, and the model is asked once more, for its answer. 0: it is told
    of no tool."""
    parallel_calls: int = 8
    """Of tools, at once; the others of a step wait for their turn. One at a time has the run's sandbox."""
    tokens: int = 1_000_000
    """Read and written, of all calls."""
    seconds: float = 7_200
    """Of work, in all activations together."""
    reply_tokens: int = 4_096
    """Of one answer."""
    result_characters: int = 20_000
    """Of a tool's result, as the model reads it; of a longer one the whole is an artifact, and named."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if name == "tool_calls" and value == 0:
                continue
            if not value > 0:
                raise BadOption(f"{name}: more than 0, not {value}")


class LoopResult(msgspec.Struct, frozen=True, kw_only=True):
    stop: Stop
    text: str
    """The model's last words: its answer, if it came to one."""
    steps: int
    tool_calls: int
    usage: dict[str, Usage]
    """By model."""
    price: int
    """Of all calls that are on record, in micro-credits."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person says became of a call that must not be made twice."""

    result: str | None = None
    """It was made, and this came of it."""
    again: bool = False
    """It was not made: make it."""
    is_error: bool = False

    def __post_init__(self) -> None:
        if self.again == (self.result is not None):
            raise ValueError("either a result, or again")


class NeedsAnswer(Exception):
    """A worker died while a tool ran that must not run twice: a person is to say what became of the call."""

    def __init__(self, signal: str, tool: str, arguments: str) -> None:
        super().__init__(f"did the call of {tool} take place? Answer with the signal {signal!r}")
        self.signal = signal
        self.tool = tool
        self.arguments = arguments
