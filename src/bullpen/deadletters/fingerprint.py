"""Telling whether two jobs failed for the same reason.

What differs from one job to the next (numbers, ids, quoted values) is left out of the message;
the place in the code is the innermost frame's file and function, without the line, which moves
with each edit, and without the folder, which differs between machines.
"""

import hashlib
import re

from bullpen.job.record import JobRecord

_LENGTH = 12
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b")
# An apostrophe within a word opens no quotation.
_QUOTED = re.compile(r"""(?<!\w)'[^'\n]*'(?!\w)|"[^"\n]*"|`[^`\n]*`""")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_PYTHON_FRAME = re.compile(r'^ *File "(?P<path>[^"]*)", line \d+(?:, in (?P<function>\S+))?', re.MULTILINE)
_NODE_FRAME = re.compile(r"^ *at (?:(?P<function>[^\s(]+) \()?(?P<path>[^()\n]+?):\d+:\d+\)?$", re.MULTILINE)


def fingerprint_of(job: JobRecord) -> str:
    """A short text that is the same for jobs that failed for the same reason."""
    failure = job.failure
    kind, message = (failure.type or failure.kind, failure.message) if failure is not None else ("", "")
    parts = (job.queue, job.name, kind, normalised(message), innermost_frame(stack_of(job)))
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:_LENGTH]


def normalised(message: str) -> str:
    """The message without what belongs to one job only."""
    for pattern, word in ((_UUID, "<id>"), (_QUOTED, "<text>"), (_HEX, "<id>"), (_NUMBER, "<n>")):
        message = pattern.sub(word, message)
    return " ".join(message.split())


def stack_of(job: JobRecord) -> str:
    """The stack of the last failure, if one was kept."""
    if job.failure is not None and job.failure.stack:
        return job.failure.stack
    return job.stacks[-1] if job.stacks else ""


def innermost_frame(stack: str) -> str:
    """`file:function` where the error was raised; Python tells it last, Node first."""
    frames = list(_PYTHON_FRAME.finditer(stack))
    frame = frames[-1] if frames else _NODE_FRAME.search(stack)
    if frame is None:
        return ""
    file = re.split(r"[/\\]", frame["path"])[-1]
    return f"{file}:{frame['function'] or ''}"
