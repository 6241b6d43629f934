"""Workers on machines that do not reach the store: they work over HTTPS, through a Bullpen server."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullpen.remote.worker import RemoteWorker
else:
    from bullpen.exports import late

    __getattr__ = late(__name__, {"worker": ("RemoteWorker",)})

__all__ = ["RemoteWorker"]
