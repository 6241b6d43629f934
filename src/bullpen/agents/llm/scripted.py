"""A model that says what a script tells it to: for demos, for tests, and for prices that can be checked by hand.

Which turn comes is read off the conversation, not counted here: a run that is resumed elsewhere gets the same answers.
"""

import asyncio
import inspect
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bullpen.agents.llm.deltas import CallDelta, Delta, End, Started, TextDelta, UsageDelta
from bullpen.agents.llm.retrying import Sleep
from bullpen.agents.llm.words import Message, Request, Role, StopReason, Usage, check_request, size_of, to_json
from bullpen.errors import AnswerBroken, BadOption, CallRefused, ModelError

_BYTES_A_TOKEN = 4
_KINDS: list[type[ModelError]] = [ModelError, *ModelError.__subclasses__()]
_ERRORS = {kind.code: kind for kind in _KINDS}


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be true of the last message; all that is said."""

    role: Role | None = None
    contains: str = ""
    matches: str = ""
    """A regular expression that is found in it."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.matches)
        except re.error as error:
            raise ValueError(f"matches: {error}") from None

    def holds(self, message: Message) -> bool:
        text = "\n".join((message.text, *(result.text for result in message.results)))
        is_role = self.role is None or message.role == self.role
        return is_role and self.contains in text and re.search(self.matches, text) is not None


class CallTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool to call; arguments that are a text are sent as they are, JSON or not."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str = ""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error in place of the answer, or in the midst of it."""

    code: str = ModelError.code
    """Of one of the errors of models, such as `model-limited`."""
    message: str = "as the script says"
    retry_after: float | None = None
    times: int | None = None
    """After so many tries the turn goes well; without it, never."""
    after: int | None = None
    """Not at once, but after so many characters of the text."""

    def __post_init__(self) -> None:
        if self.code not in _ERRORS:
            raise ValueError(f"code: one of {', '.join(sorted(_ERRORS))}, not {self.code!r}")

    def error(self, model: str) -> ModelError:
        # What broke in its midst is broken, whatever else a script calls it by default.
        kind = AnswerBroken if self.after is not None and self.code == ModelError.code else _ERRORS[self.code]
        return kind(
            f"scripted: {self.message}",
            provider="scripted",
            model=model,
            retry_after=self.retry_after,
            may_cost=True if self.after is not None else None,
        )


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer."""

    text: str = ""
    calls: tuple[CallTurn, ...] = ()
    stop: StopReason | None = None
    """By what is said, unless told."""
    usage: Usage | None = None
    """A token for each four bytes, unless told."""
    chunk: int = 0
    """Characters in each piece; 0 is all at once."""
    delay: float = 0.0
    """Seconds before each piece."""
    error: Fault | None = None
    when: Condition | None = None
    """Say this whenever the last message is such; the other turns come by their number."""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Turns by number (the first answer of a conversation is the first), and turns that fit the last message."""

    turns: tuple[Turn, ...]

    def turn(self, request: Request) -> tuple[int, Turn]:
        """The answer to this conversation, and its place in the script. CallRefused if there is none."""
        last = request.messages[-1]
        for n, turn in enumerate(self.turns):
            if turn.when is not None and turn.when.holds(last):
                return n, turn
        numbered = [(n, turn) for n, turn in enumerate(self.turns) if turn.when is None]
        answered = sum(message.role == Role.ASSISTANT for message in request.messages)
        if answered >= len(numbered):
            raise CallRefused(
                f"scripted: the script has no answer number {answered + 1}", provider="scripted", model=request.model
            )
        return numbered[answered]


Answering = Callable[[Request], Turn | str | Awaitable[Turn | str]]
"""A script in Python: the turn, or just its text."""


def script_in(text: str, *, what: str = "script") -> Script:
    """A script from YAML; BadOption names what is wrong in it. Needs `bullpen[agents]`."""
    try:
        return msgspec.yaml.decode(text, type=Script)
    except (msgspec.DecodeError, ValueError) as error:
        raise BadOption(f"{what}: {error}") from None


def script_from(path: str | Path) -> Script:
    try:
        return script_in(Path(path).read_text("utf-8"), what=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"script: {str(path)!r} cannot be read: {error}") from None


class ScriptedProvider:
    """Answers by a script, or as a function says."""

    def __init__(self, script: Script | Answering, *, name: str = "scripted", sleep: Sleep = asyncio.sleep) -> None:
        self._script = script
        self._name = name
        self._sleep = sleep
        self._failed: Counter[int] = Counter()

    @property
    def name(self) -> str:
        return self._name

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        check_request(request)
        place, turn = await self._turn(request)
        fault = self._fault(place, turn)
        if fault is not None and fault.after is None:
            await self._sleep(turn.delay)
            raise fault.error(request.model)
        yield Started(request.model, provider=self._name)
        pieces = _pieces(request, turn)
        for delta in pieces if fault is None else _until(fault.after or 0, pieces):
            await self._sleep(turn.delay)
            yield delta
        if fault is not None:
            raise fault.error(request.model)

    async def probe(self) -> None:
        """It is always there."""

    async def close(self) -> None:
        """It has nothing open."""

    async def _turn(self, request: Request) -> tuple[int, Turn]:
        if isinstance(self._script, Script):
            return self._script.turn(request)
        said = self._script(request)
        if inspect.isawaitable(said):
            said = await said
        return len(request.messages), Turn(text=said) if isinstance(said, str) else said

    def _fault(self, place: int, turn: Turn) -> Fault | None:
        if turn.error is None:
            return None
        self._failed[place] += 1
        is_over = turn.error.times is not None and self._failed[place] > turn.error.times
        return None if is_over else turn.error


def _pieces(request: Request, turn: Turn) -> Iterator[Delta]:
    room = request.max_tokens * _BYTES_A_TOKEN
    text, calls = turn.text, list(_calls(request, turn))
    is_cut = turn.usage is None and _size(text, calls) > room
    if is_cut:
        text, calls = text.encode()[:room].decode(errors="ignore"), []
    for part in _parts(text, turn.chunk):
        yield TextDelta(part)
    for n, (call_id, name, arguments) in enumerate(calls):
        yield CallDelta(n, call_id, name)
        for part in _parts(arguments, turn.chunk):
            yield CallDelta(n, arguments=part)
    yield UsageDelta(turn.usage or _usage(request, text, calls))
    usual = StopReason.MAX_TOKENS if is_cut else StopReason.TOOL_CALLS if calls else StopReason.ANSWER
    stop = turn.stop or usual
    yield End(stop, stop)


def _until(characters: int, pieces: Iterator[Delta]) -> Iterator[Delta]:
    """What comes before the text is that long; never the end."""
    left = characters
    for delta in pieces:
        if isinstance(delta, UsageDelta | End) or left <= 0:
            return
        if isinstance(delta, TextDelta):
            yield TextDelta(delta.text[:left])
            left -= len(delta.text)
        else:
            yield delta


_Call = tuple[str, str, str]
"""Its id, the tool's name, the arguments."""


def _calls(request: Request, turn: Turn) -> Iterator[_Call]:
    for n, call in enumerate(turn.calls):
        arguments = call.arguments if isinstance(call.arguments, str) else to_json(call.arguments).decode()
        yield call.id or f"call_{len(request.messages)}_{n}", call.name, arguments


def _parts(text: str, chunk: int) -> Iterator[str]:
    size = chunk or max(len(text), 1)
    return (text[start : start + size] for start in range(0, len(text), size))


def _size(text: str, calls: list[_Call]) -> int:
    return len(text.encode()) + sum(len(f"{name}{arguments}".encode()) for _, name, arguments in calls)


def _usage(request: Request, text: str, calls: list[_Call]) -> Usage:
    read = size_of(request.messages) + len(to_json(request.tools))
    return Usage(math.ceil(read / _BYTES_A_TOKEN), math.ceil(_size(text, calls) / _BYTES_A_TOKEN))
