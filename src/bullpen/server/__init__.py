"""The HTTP server: queues, jobs and records for programs and people, and the dashboard.

    from bullpen.server import create_app

    app = create_app("redis://localhost", "postgresql://…")     # for any ASGI server; `bullpen server` runs it

Needs the extra `server`.
"""

from typing import TYPE_CHECKING

from bullpen.server.app import create_app
from bullpen.server.settings import JwtSettings, ServerSettings

if TYPE_CHECKING:
    from bullpen.server.running import serve
else:
    from bullpen.exports import late

    __getattr__ = late(__name__, {"running": ("serve",)})

__all__ = ["JwtSettings", "ServerSettings", "create_app", "serve"]
