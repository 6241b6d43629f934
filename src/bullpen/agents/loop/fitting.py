"""Several texts for one question to a model: all of them, or as much of each as its window has room for."""

from collections.abc import Sequence

from bullpen.agents.llm.models import Model

FULL = 0.75
"""Of the window, which is as much as is filled: tokens are only guessed from bytes."""
BYTES_A_TOKEN = 3
"""Of what no provider has counted yet; most texts have more."""
_LEAST = 200
"""Bytes of each text, whatever the room."""
_CUT = "\n… the rest of it is left out"


def room_for(model: Model, rest: str, reply_tokens: int) -> int:
    """Bytes that a question has left beside the rest of it, and beside its answer."""
    return int(model.context_window * FULL - reply_tokens) * BYTES_A_TOKEN - len(rest.encode(errors="replace"))


def fitted(texts: Sequence[str], room: int) -> list[str]:
    """The texts in so many bytes together. Only the longest are cut, all to the same length."""
    sizes = sorted(len(text.encode(errors="replace")) for text in texts)
    share = room
    for n, size in enumerate(sizes):
        # What shorter ones leave of the room is for those that are longer.
        share = room // (len(sizes) - n)
        if size > share:
            break
        room -= size
    else:
        return list(texts)
    return [_cut(text, max(share, _LEAST)) for text in texts]


def _cut(text: str, most: int) -> str:
    data = text.encode(errors="replace")
    if len(data) <= most:
        return text
    return data[: most - len(_CUT.encode())].decode(errors="ignore") + _CUT
