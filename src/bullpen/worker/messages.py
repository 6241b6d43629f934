"""What a worker and the process that runs a handler for it say to each other.

Frames of four bytes of length and a tagged msgpack record, over a socket pair.
"""

import struct
from typing import Any

import msgspec

from bullpen.job.record import JobRecord
from bullpen.job.spec import NewJob

LENGTH = struct.Struct("!I")


class RunJob(msgspec.Struct, frozen=True, tag_field="kind", tag="run"):
    job: JobRecord
    data: Any
    handler: str
    """`module:name`."""


class StopJob(msgspec.Struct, frozen=True, tag_field="kind", tag="stop"):
    reason: str


class Begun(msgspec.Struct, frozen=True, tag_field="kind", tag="begun"):
    """The job has arrived: if the process ends now, it ended under this job."""


class LogLine(msgspec.Struct, frozen=True, tag_field="kind", tag="log"):
    line: str


class Progress(msgspec.Struct, frozen=True, tag_field="kind", tag="progress"):
    json: bytes


class Then(msgspec.Struct, frozen=True, tag_field="kind", tag="then"):
    job: NewJob


class Done(msgspec.Struct, frozen=True, tag_field="kind", tag="done"):
    json: bytes


class Raised(msgspec.Struct, frozen=True, tag_field="kind", tag="raised"):
    """The handler raised; the exception itself does not cross, its description does."""

    type: str
    message: str
    stack: str
    retryable: bool | None = None
    code: str | int | None = None
    status: int | None = None
    postpone_s: float | None = None
    limited_s: float | None = None
    limits_queue: bool = False
    cancelled: bool = False


ToProcess = RunJob | StopJob
FromProcess = Begun | LogLine | Progress | Then | Done | Raised

_encode = msgspec.msgpack.Encoder().encode
_to_process: msgspec.msgpack.Decoder[ToProcess] = msgspec.msgpack.Decoder(ToProcess)
_from_process: msgspec.msgpack.Decoder[FromProcess] = msgspec.msgpack.Decoder(FromProcess)
decode_to_process = _to_process.decode
decode_from_process = _from_process.decode


def frame(message: ToProcess | FromProcess) -> bytes:
    body = _encode(message)
    return LENGTH.pack(len(body)) + body
