"""A conversation that outgrows the model's window is told in short, by the model itself, in a step of its own.

Whether it is time is read off what is on record, so that each activation decides the same.
"""

from collections.abc import Sequence

from bullpen.agents.llm.models import Model
from bullpen.agents.llm.words import NONE, Conversation, Message, Request, Role, Usage, size_of, system, user

_FULL = 0.75
"""Of the window: beyond it a conversation is compacted."""
_BYTES_A_TOKEN = 3
"""Of what no provider has counted yet; most texts have more."""
_KEPT = 6
"""Messages at the end that stay as they are."""
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
        tokens = size_of(messages) // _BYTES_A_TOKEN
    else:
        tokens = counted.total_tokens + size_of(messages[counted_at + 1 :]) // _BYTES_A_TOKEN
    return tokens + reply_tokens > model.context_window * _FULL and _cut(messages) is not None


def request_for(model: str, messages: Sequence[Message], reply_tokens: int) -> Request:
    """Asks the model to tell the first part in short."""
    cut = _cut(messages)
    assert cut is not None
    told = "\n\n".join(map(_as_text, messages[_begin(messages) : cut]))
    return Request(model=model, messages=(system(_ASK), user(told)), max_tokens=reply_tokens, tool_choice=NONE)


def compacted(messages: Sequence[Message], summary: str) -> Conversation:
    """The conversation with its first part in short."""
    cut = _cut(messages)
    assert cut is not None
    return Conversation((*messages[: _begin(messages)], user(_SO_FAR + summary), *messages[cut:]))


def _begin(messages: Sequence[Message]) -> int:
    """What comes before is never told in short: the system's words, and the last thing that was asked before work."""
    return next((n for n, one in enumerate(messages) if one.role is Role.ASSISTANT), len(messages))


def _cut(messages: Sequence[Message]) -> int | None:
    """Where the part that stays begins: at an answer of the model, so that no result loses its call."""
    begin = _begin(messages)
    for place in range(len(messages) - _KEPT, begin + 1, -1):
        if messages[place].role is Role.ASSISTANT:
            return place
    return None


def _as_text(message: Message) -> str:
    lines = [message.text] if message.text else []
    lines += [f"[calls {call.name} with {call.arguments}]" for call in message.calls]
    lines += [f"[{'error' if result.is_error else 'result'}: {result.text}]" for result in message.results]
    return f"{message.role.upper()}: " + "\n".join(lines)
