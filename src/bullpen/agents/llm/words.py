"""What is said to a model and what it says: our own words, whatever its provider speaks.

All of them are JSON when written, since each call is kept in the journal of its run.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Self

import msgspec

from bullpen.agents.llm.allowance import Allowance
from bullpen.errors import BadData, BadOption

AUTO = "auto"
"""The model decides whether it calls a tool."""
NONE = "none"
"""It may not."""
ANY = "any"
"""It must call one of them; the name of a tool instead of these words: that one."""

MAX_TOKENS = 4_096
_encode = msgspec.json.Encoder().encode
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class StopReason(StrEnum):
    """Why a model said no more."""

    ANSWER = "answer"
    """It has said all."""
    TOOL_CALLS = "tool_calls"
    """It waits for the results of tools."""
    MAX_TOKENS = "max_tokens"
    STOP_TEXT = "stop_text"
    """It came to one of the texts that it was told to stop at."""
    REFUSED = "refused"
    """It, or its provider's filter, does not want to."""
    OTHER = "other"
    """A word that we do not know; the reply's `stop_word` has it."""


class ToolCall(msgspec.Struct, frozen=True):
    """A model asks for a tool."""

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it, which may be none."""

    def parsed(self) -> dict[str, Any]:
        """The arguments by name; BadData if they are not a JSON object, in words that can be told to the model."""
        try:
            arguments = msgspec.json.decode(self.arguments.encode(errors="surrogatepass"))
        except msgspec.DecodeError as error:
            raise BadData(f"arguments: of the call of {self.name!r} are not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise BadData(f"arguments: of the call of {self.name!r} must be a JSON object with a field for each")
        return arguments


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tool answered."""

    call_id: str
    text: str
    is_error: bool = False


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """A JSON schema of its arguments, which is an object."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn of a conversation."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant."""
    results: tuple[ToolResult, ...] = ()
    """Of tools: one for each call of the message before."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens of a call, as its provider counted them."""

    input_tokens: int = 0
    """All that was read, also the next two."""
    output_tokens: int = 0
    """All that was written, also what is not shown."""
    cached_input_tokens: int = 0
    """Read from the provider's cache."""
    cache_write_tokens: int = 0
    """Read, and put into its cache."""
    reasoning_tokens: int = 0
    """Written, but not shown."""

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, field) + getattr(other, field) for field in self.__struct_fields__))


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model is asked."""

    model: str
    """A name of the table of models."""
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = AUTO
    """AUTO, NONE, ANY, or the name of the tool to call."""
    parallel_calls: bool = True
    """Whether it may ask for several tools at once."""
    max_tokens: int = MAX_TOKENS
    """How much it may write; always said, since nothing else bounds what a call costs."""
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    """Texts at which it stops."""
    idempotency_key: str | None = None
    """The same for each try of the same call: a provider that knows it answers, and charges, once."""
    metadata: dict[str, str] = {}
    """For our own records. Only `user`, an opaque id of whoever asked, is told to the provider."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model answered, whole."""

    model: str
    """What answered: by its name in the table where a router asked, else as it was asked for."""
    provider: str = ""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason = StopReason.ANSWER
    stop_word: str = ""
    """The provider's own word for it."""
    usage: Usage | None = None
    """None where the provider did not tell."""
    request_id: str = ""
    """By which the provider finds the call again."""
    allowance: Allowance | None = None
    """What the provider still allows, where it tells."""

    def message(self) -> Message:
        """The reply as the next turn of its conversation."""
        return Message(Role.ASSISTANT, self.text, self.calls)


def system(text: str) -> Message:
    """What a model is told beforehand."""
    return Message(Role.SYSTEM, text)


def user(text: str) -> Message:
    """What somebody says to a model."""
    return Message(Role.USER, text)


def assistant(text: str = "", *calls: ToolCall) -> Message:
    return Message(Role.ASSISTANT, text, calls)


def results(*answers: ToolResult) -> Message:
    """What came of the calls that a model asked for."""
    return Message(Role.TOOL, results=answers)


def to_json(said: object) -> bytes:
    """Words as they are sent and counted; BadOption for what JSON cannot carry, such as half a character."""
    try:
        return _encode(said)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadOption(f"messages: cannot be written as JSON: {error}") from None


class Conversation(tuple[Message, ...]):  # noqa: SLOT001 - no slots beside those of a tuple
    """Messages that grow at their end: each is measured and checked once, though all are sent with every request.

    BadOption for a result without its call, or a call without its result.
    """

    size: int
    """Bytes of their JSON."""

    def __new__(cls, messages: Iterable[Message] = ()) -> Self:
        made = super().__new__(cls, messages)
        made.size = len(to_json(made))
        _open_calls(made)
        return made

    def then(self, *more: Message) -> "Conversation":
        """The same, and what was said next."""
        if not self:
            return Conversation(more)
        _open_calls(more, start=len(self), before=self[-1].calls)
        grown = super().__new__(Conversation, (*self, *more))
        grown.size = self.size + sum(len(",") + len(to_json(one)) for one in more)
        return grown


def size_of(messages: tuple[Message, ...]) -> int:
    """Bytes of their JSON."""
    return messages.size if isinstance(messages, Conversation) else len(to_json(messages))


def check_tool_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each once; BadOption for what cannot be one."""
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        if not _TOOL_NAME.fullmatch(name) or name in {AUTO, NONE, ANY}:
            raise BadOption(f"tools: {name!r} is no name for a tool")
    return wanted


def check_request(request: Request) -> None:
    """BadOption, which names the field, for what no model could be asked."""
    if not any(message.role != Role.SYSTEM for message in request.messages):
        raise BadOption("messages: at least one that is not the system's")
    if request.max_tokens < 1:
        raise BadOption(f"max_tokens: a whole number of 1 or more, not {request.max_tokens!r}")
    if request.temperature is not None and not 0 <= request.temperature <= 2:
        raise BadOption(f"temperature: a number from 0 to 2, not {request.temperature!r}")
    names = [tool.name for tool in request.tools]
    for n, name in enumerate(names):
        if not _TOOL_NAME.fullmatch(name) or name in {AUTO, NONE, ANY} or name in names[:n]:
            raise BadOption(f"tools[{n}]: {name!r} is no name for a tool, or is there twice")
    if request.tool_choice not in {AUTO, NONE, ANY, *names}:
        raise BadOption(f"tool_choice: {request.tool_choice!r} is none of auto, none, any and the tools' names")
    if left := _calls_at_the_end(request.messages):
        raise BadOption(f"messages: the last calls have no results: {', '.join(sorted(call.id for call in left))}")


def _calls_at_the_end(messages: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    return messages[-1].calls if isinstance(messages, Conversation) else _open_calls(messages)


def _open_calls(
    messages: tuple[Message, ...], *, start: int = 0, before: tuple[ToolCall, ...] = ()
) -> tuple[ToolCall, ...]:
    """The calls of the last message; BadOption unless all before it have their results, and no others are there.

    Providers refuse either, each in words of its own. `start` is the number of the first message, `before` the calls
    that it answers.
    """
    for n, message in enumerate(messages, start):
        # Nearly all answer in the order of the calls.
        if (before or message.results) and [one.call_id for one in message.results] != [call.id for call in before]:
            _check_results(n, {one.call_id for one in message.results}, {call.id for call in before})
        before = message.calls
    return before


def _check_results(n: int, answered: set[str], open_calls: set[str]) -> None:
    if not answered <= open_calls:
        raise BadOption(f"messages[{n}]: has a result for a call that the message before did not make")
    if answered != open_calls:
        raise BadOption(f"messages[{n}]: the calls before it have no results: {', '.join(sorted(open_calls))}")
