"""A conversation that outgrows the model's window is told in short, by the model itself, in a step of its own.

Whether it is time is read off what is on record, so that each activation decides the same: also one that takes the
model's window for another.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from bullpen.agents.llm.models import Model
from bullpen.agents.llm.words import NONE, Conversation, Message, Request, Role, Usage, size_of, system, user
from bullpen.agents.loop.fitting import BYTES_A_TOKEN, FULL, fitted, room_for

_KEPT = 6
"""Messages at the end that stay, if they have room."""
_ASK = (
    "You will be shown the first part of a conversation between a user and an assistant with tools. Write down, in"
    " short, all that the assistant needs in order to go on without it: what was asked for, what was found out, what"
    " was done and with which results, what is still open. Names, numbers, paths and ids stay exact."
)
_SO_FAR = "The first part of this conversation was too long to keep. What happened in it, in short:\n\n"


def is_full(
    model: Model, messages: tuple[Message, ...], counted: Usage | None, counted_at: int, reply_tokens: int
) -> bool:
    """Whether the next call may not fit. `counted` is what the last one used, whose answer is at `counted_at`."""
    if counted is None:
        tokens = size_of(messages) // BYTES_A_TOKEN
    else:
        tokens = counted.total_tokens + size_of(messages[counted_at + 1 :]) // BYTES_A_TOKEN
    return tokens + reply_tokens > model.context_window * FULL


def cut_for(model: Model, messages: Sequence[Message], reply_tokens: int) -> int | None:
    """Where the part that stays begins; None if that is all of it."""
    return _cut(messages, _room(model, reply_tokens))


def request_for(name: str, model: Model, messages: Sequence[Message], cut: int, reply_tokens: int) -> Request:
    """Asks the model to tell the first part in short, up to where the part that stays begins."""
    texts = list(map(_as_text, messages[_begin(messages) : cut]))
    told = "\n\n".join(fitted(texts, room_for(model, _ASK, reply_tokens)))
    return Request(model=name, messages=(system(_ASK), user(told)), max_tokens=reply_tokens, tool_choice=NONE)


def compacted(model: Model, messages: Conversation, cut: int | None, summary: str, reply_tokens: int) -> Conversation:
    """The conversation with its first part in short, if there is one, and no more of long results than has room."""
    room, begin = _room(model, reply_tokens), _begin(messages)
    if cut is not None:
        return Conversation((*messages[:begin], user(_SO_FAR + summary), *_shortened(messages[cut:], room)))
    tail = _shortened(messages[begin:], room)
    return messages if tail == messages[begin:] else Conversation((*messages[:begin], *tail))


def _room(model: Model, reply_tokens: int) -> int:
    """Bytes of the part that stays: the other half is for what comes before it, and for what comes next."""
    return max(0, room_for(model, "", reply_tokens) // 2)


def _shortened(messages: tuple[Message, ...], room: int) -> tuple[Message, ...]:
    """The same in so many bytes, as far as that can be had from results."""
    texts = [result.text for message in messages for result in message.results]
    rest = size_of(_with_results(messages, [""] * len(texts)))
    return _with_results(messages, fitted(texts, room - rest))


def _with_results(messages: tuple[Message, ...], texts: Sequence[str]) -> tuple[Message, ...]:
    text = iter(texts)
    return tuple(
        replace(message, results=tuple(replace(result, text=next(text)) for result in message.results))
        for message in messages
    )


def _begin(messages: Sequence[Message]) -> int:
    """What comes before is never told in short: the system's words, and the last thing that was asked before work."""
    return next((n for n, one in enumerate(messages) if one.role is Role.ASSISTANT), len(messages))


def _cut(messages: Sequence[Message], room: int) -> int | None:
    """Where the part that stays begins: at an answer of the model, so that no result loses its call.

    It is of a few messages; of fewer where they have no room, but for the last answer and what came of it.
    """
    begin = _begin(messages)
    turns = [n for n in range(begin + 1, len(messages)) if messages[n].role is Role.ASSISTANT]
    place = max((n for n in turns if n <= len(messages) - _KEPT), default=None)
    start = begin if place is None else place
    later = [n for n in turns if n > start]
    if not later or size_of(tuple(messages[start:])) <= room:
        return place
    return next((n for n in later if size_of(tuple(messages[n:])) <= room), later[-1])


def _as_text(message: Message) -> str:
    lines = [message.text] if message.text else []
    lines += [f"[calls {call.name} with {call.arguments}]" for call in message.calls]
    lines += [f"[{'error' if result.is_error else 'result'}: {result.text}]" for result in message.results]
    return f"{message.role.upper()}: " + "\n".join(lines)
