"""A real calendar server (Radicale) on this machine."""

import contextlib
import threading
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from radicale import config
from radicale.app import Application

USER, PASSWORD = "anna", "a-long-secret-0815"
_MAKE = b"""<?xml version="1.0"?><mkcalendar xmlns="urn:ietf:params:xml:ns:caldav"/>"""


class DavServer:
    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/{USER}/work/"
        self.asked: list[str] = []
        """Methods, in order."""

    def send(self, method: str, path: str, body: bytes = b"") -> bytes:
        """As another program would, not by what is tested."""
        request = urllib.request.Request(f"{self.url}{path}", data=body or None, method=method)
        request.add_header("Authorization", "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode())
        with urllib.request.urlopen(request, timeout=20) as answer:
            data: bytes = answer.read()
        return data


@contextlib.contextmanager
def running_dav(folder: Path) -> Iterator[DavServer]:
    """With one calendar, of the user's."""
    (folder / "users").write_text(f"{USER}:{PASSWORD}\n")
    settings = config.load()
    settings.update(
        {
            "auth": {
                "type": "htpasswd",
                "htpasswd_filename": str(folder / "users"),
                "htpasswd_encryption": "plain",
                "delay": "0",
            },
            "storage": {"filesystem_folder": str(folder / "collections")},
        },
        "test",
    )
    serve = Application(settings)
    known: list[DavServer] = []

    def counted(environ: Any, start_response: Any) -> Any:
        known[0].asked.append(environ["REQUEST_METHOD"])
        return serve(environ, start_response)

    class Quiet(WSGIRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    with make_server("127.0.0.1", 0, counted, handler_class=Quiet) as http:
        server = DavServer(http.server_port)
        known.append(server)
        thread = threading.Thread(target=http.serve_forever, args=(0.05,))
        thread.start()
        try:
            server.send("MKCALENDAR", "", _MAKE)
            server.asked.clear()
            yield server
        finally:
            http.shutdown()
            thread.join()
