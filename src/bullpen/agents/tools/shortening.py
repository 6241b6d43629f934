"""Long output: the model sees its beginning and its end, and the whole is a file of the run that it can name."""

import hashlib
from typing import NamedTuple

from bullpen.agents.tools.tool import ToolContext


class Shortened(NamedTuple):
    text: str
    note: str
    """Where the whole is; empty if this is the whole."""


async def shortened(
    ctx: ToolContext, name: str, data: bytes, *, most: int, cut_before: bool = False, mime: str = "text/plain"
) -> Shortened:
    """The text, with its middle left out where it is longer than `most` characters.

    `cut_before` says that the data itself is but the beginning of what there was.
    """
    text = data.decode(errors="replace")
    lost = f"; it wrote more, of which only the first {len(data)} bytes were kept" if cut_before else ""
    if len(text) <= most:
        return Shortened(text, lost.removeprefix("; "))
    where = "the rest is not kept"
    if ctx.files is not None:
        # A call that is made again after a crash may print otherwise: what it says is kept must be that.
        key = f"{ctx.key}/{hashlib.sha256(data).hexdigest()[:16]}"
        artifact = await ctx.files(key, name, data, mime=mime)
        where = f"all of it is the artifact {artifact} ({name}, {len(data)} bytes)"
    # The end tells how it went, the beginning what it was about.
    head, tail = text[: most // 2], text[len(text) - (most - most // 2) :]
    left_out = len(text) - most
    return Shortened(
        f"{head}\n… {left_out} characters left out …\n{tail}", f"{left_out} characters left out; {where}{lost}"
    )
