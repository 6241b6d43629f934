"""The dependency that every route has: who calls, if they may."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from bullpen.errors import QueueMissing
from bullpen.server.access.caller import Caller
from bullpen.server.access.roles import OF_QUEUES, PERMISSIONS
from bullpen.server.problems import forbidden


class Allowed:
    """`Depends(Allowed("jobs:read"))` is the caller, or they are refused.

    With `whole` it concerns all tenants at once, so that a caller with a tenant is refused.
    """

    def __init__(self, permission: str, *, whole: bool = False) -> None:
        if permission not in PERMISSIONS:
            raise ValueError(f"{permission!r} is no permission")
        self.permission = permission
        self.whole = whole

    async def __call__(self, connection: HTTPConnection) -> Caller:
        # A WebSocket has no route of ours around it that would have asked already.
        known: Caller | None = getattr(connection.state, "caller", None)
        caller = known or await connection.app.state.site.access.identify(connection)
        if caller.queues is not None and self.permission not in OF_QUEUES:
            raise forbidden("this concerns all queues, and the caller sees some of them only")
        if self.permission not in caller.permissions:
            raise forbidden(f"the role {caller.role} has not the permission {self.permission}")
        if self.whole and caller.tenant is not None:
            raise forbidden("this concerns all tenants, and the caller has one")
        queue = connection.path_params.get("queue")
        if queue is not None and not caller.sees_queue(queue):
            raise QueueMissing(f"no queue {queue!r}")
        return caller


def allowed(permission: str, *, whole: bool = False) -> object:
    """What stands beside `Caller` in an annotation."""
    return Depends(Allowed(permission, whole=whole))


MeReader = Annotated[Caller, allowed("me:read")]
QueueReader = Annotated[Caller, allowed("queues:read")]
QueueWriter = Annotated[Caller, allowed("queues:write", whole=True)]
JobReader = Annotated[Caller, allowed("jobs:read")]
JobAdder = Annotated[Caller, allowed("jobs:add")]
JobRetrier = Annotated[Caller, allowed("jobs:retry")]
JobCanceller = Annotated[Caller, allowed("jobs:cancel")]
JobSignaller = Annotated[Caller, allowed("jobs:signal")]
JobWriter = Annotated[Caller, allowed("jobs:write")]
RemoteWorker = Annotated[Caller, allowed("remote:work")]
EventReader = Annotated[Caller, allowed("events:read")]
RunReader = Annotated[Caller, allowed("runs:read")]
