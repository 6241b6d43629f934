"""A small server that speaks as much of S3 as blobs ask for: objects, uploads in parts, lists, and who may.

It takes what has a signature of its key, and does not recompute it: what is under test is what we ask for.
"""

import contextlib
import re
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEY = "test-key"
NO_BUCKET = "nowhere"
"""The one bucket that is not there."""
_PAGE = 3
"""Keys in a list, so that few objects make several pages."""


class Object(NamedTuple):
    data: bytes
    written: datetime


@dataclass
class Bucket:
    """What the server keeps, for tests to look at and to spoil."""

    url: str = ""
    objects: dict[str, Object] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    uploaded_in_parts: int = 0
    status: int = 0
    """If not 0, what every request is answered with."""

    def age(self, key: str, written: datetime) -> None:
        self.objects[key] = self.objects[key]._replace(written=written)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refused(self) -> bool:
        allowed = f"Credential={KEY}/" in self.headers.get("Authorization", "")
        status = self.bucket.status or (0 if allowed else 403)
        if status:
            self._answer(status, b"<Error><Code>Refused</Code><Message>no</Message></Error>")
        return bool(status)

    def _take(self) -> tuple[str, dict[str, str], bytes]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        key = unquote(parts.path).lstrip("/").partition("/")[2]
        return key, query, self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_PUT(self) -> None:
        key, query, body = self._take()
        if self._refused():
            return
        if self.path.startswith(f"/{NO_BUCKET}/"):
            self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            return
        if "uploadId" in query:
            self.bucket.uploads[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self.bucket.objects[key] = Object(body, datetime.now(UTC))
        self._answer(200, ETag='"etag"')

    def do_POST(self) -> None:
        key, query, body = self._take()
        if self._refused():
            return
        if "uploads" in query:
            upload = uuid.uuid4().hex
            self.bucket.uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
        elif "uploadId" in query:
            found = self.bucket.uploads.pop(query["uploadId"])
            self.bucket.objects[key] = Object(b"".join(found[n] for n in sorted(found)), datetime.now(UTC))
            self.bucket.uploaded_in_parts += 1
            text = "<CompleteMultipartUploadResult><ETag>etag</ETag></CompleteMultipartUploadResult>"
        else:
            gone = [key.decode() for key in re.findall(rb"<Key>([^<]+)</Key>", body)]
            for key in gone:
                self.bucket.objects.pop(key, None)
            told = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in gone)
            text = f"<DeleteResult>{told}</DeleteResult>"
        self._answer(200, text.encode(), Content_Type="application/xml")

    def do_GET(self) -> None:
        key, query, _ = self._take()
        if self._refused():
            return None
        if not key:
            return self._answer(200, self._list(query).encode(), Content_Type="application/xml")
        if key not in self.bucket.objects:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        found = self.bucket.objects[key]
        modified = found.written.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return self._answer(200, found.data, ETag='"etag"', Last_Modified=modified)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        key, _, _ = self._take()
        if not self._refused():
            self.bucket.objects.pop(key, None)
            self._answer(204)

    def _list(self, query: dict[str, str]) -> str:
        after = query.get("continuation-token", "")
        keys = sorted(key for key in list(self.bucket.objects) if key.startswith(query.get("prefix", "")))
        rest = [key for key in keys if key > after]
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(found.data)}</Size><ETag>etag</ETag>"
            f"<LastModified>{found.written.strftime('%Y-%m-%dT%H:%M:%S.000Z')}</LastModified></Contents>"
            for key, found in ((key, self.bucket.objects[key]) for key in rest[:_PAGE])
        )
        more = f"<NextContinuationToken>{escape(rest[_PAGE - 1])}</NextContinuationToken>" if len(rest) > _PAGE else ""
        return f"<ListBucketResult>{contents}{more}</ListBucketResult>"


@contextlib.contextmanager
def running_bucket() -> Iterator[Bucket]:
    bucket = Bucket()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    bucket.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield bucket
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
