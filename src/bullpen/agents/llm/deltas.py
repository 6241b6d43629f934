"""A model's answer as it comes, piece by piece, and the reply that the pieces make."""

import msgspec

from bullpen.agents.llm.allowance import Allowance
from bullpen.agents.llm.words import Reply, StopReason, ToolCall, Usage


class Started(msgspec.Struct, frozen=True, tag_field="kind", tag="started", omit_defaults=True):
    """The provider answers; always the first."""

    model: str
    request_id: str = ""
    allowance: Allowance | None = None
    provider: str = ""


class TextDelta(msgspec.Struct, frozen=True, tag_field="kind", tag="text"):
    """The text goes on."""

    text: str


class CallDelta(msgspec.Struct, frozen=True, tag_field="kind", tag="call", omit_defaults=True):
    """A call of a tool begins, or its arguments go on."""

    index: int
    """Which of the answer's calls, from 0."""
    id: str = ""
    name: str = ""
    arguments: str = ""


class UsageDelta(msgspec.Struct, frozen=True, tag_field="kind", tag="usage"):
    """What was used so far; the last one counts."""

    usage: Usage


class End(msgspec.Struct, frozen=True, tag_field="kind", tag="end", omit_defaults=True):
    """The answer is whole; always the last."""

    stop: StopReason
    stop_word: str = ""


class Restarted(msgspec.Struct, frozen=True, tag_field="kind", tag="restarted"):
    """What came so far is void: the call is made again."""

    reason: str


Delta = Started | TextDelta | CallDelta | UsageDelta | End | Restarted


class Gathering:
    """Puts the pieces together."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.started = Started("")
        self.usage: Usage | None = None
        self.end: End | None = None
        self._text: list[str] = []
        self._calls: dict[int, _Call] = {}

    def take(self, delta: Delta) -> None:
        match delta:
            case Started():
                self.started = delta
            case TextDelta():
                self._text.append(delta.text)
            case CallDelta():
                self._calls.setdefault(delta.index, _Call()).take(delta)
            case UsageDelta():
                self.usage = delta.usage
            case End():
                self.end = delta
            case Restarted():
                self._begin()

    @property
    def has_words(self) -> bool:
        """Whether anything came that a reader may have seen."""
        return bool(self._text or self._calls)

    def progress(self) -> str:
        """How far the answer came, for people."""
        characters, calls = sum(map(len, self._text)), len(self._calls)
        return f"{characters} characters of text and {calls} tool {'call' if calls == 1 else 'calls'}"

    def reply(self) -> Reply:
        """All of it, once it has ended."""
        assert self.end is not None, "asked before the end"
        return Reply(
            model=self.started.model,
            provider=self.started.provider,
            text="".join(self._text),
            calls=tuple(self._calls[index].whole(index) for index in sorted(self._calls)),
            stop=self.end.stop,
            stop_word=self.end.stop_word,
            usage=self.usage,
            request_id=self.started.request_id,
            allowance=self.started.allowance,
        )


class _Call:
    def __init__(self) -> None:
        self._id = ""
        self._name = ""
        self._arguments: list[str] = []

    def take(self, delta: CallDelta) -> None:
        self._id = self._id or delta.id
        self._name = self._name or delta.name
        self._arguments.append(delta.arguments)

    def whole(self, index: int) -> ToolCall:
        """A call without an id gets one, by which its result can name it; one without arguments has none."""
        return ToolCall(self._id or f"call_{index}", self._name, "".join(self._arguments) or "{}")
