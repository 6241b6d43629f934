"""A real Redis server behind TLS, with an authority of our own that signed its certificate."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.redis_server import HOST, RedisServer, free_port, redis_program, server_folder


class Certificates:
    """Files: an authority, what it signed for the server and for a client, and a stranger's authority."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.ca = self._make_authority("ca")
        self.stranger = self._make_authority("stranger")
        self.cert, self.key = self._sign("server", f"subjectAltName={name}")
        self.client_cert, self.client_key = self._sign("client", "extendedKeyUsage=clientAuth")

    def _make_authority(self, name: str) -> Path:
        self._openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", f"/CN=bullpen {name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"),
            *("-addext", "keyUsage=critical,keyCertSign"),
        )
        return self._folder / f"{name}.pem"

    def _sign(self, name: str, extension: str) -> tuple[Path, Path]:
        self._openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN=bullpen {name}", "-keyout", f"{name}.key", "-out", f"{name}.csr"),
        )
        (self._folder / f"{name}.ext").write_text(extension)
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem"),
        )
        return self._folder / f"{name}.pem", self._folder / f"{name}.key"

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self._folder, check=True, capture_output=True)


class TlsServer:
    def __init__(self, server: RedisServer, port: int, certificates: Certificates) -> None:
        self.plain = server
        """The same server without TLS, to look at it."""
        self.port = port
        self.certificates = certificates

    def url(self, *, host: str = HOST, **options: object) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"rediss://{host}:{self.port}/0" + (f"?{query}" if query else "")


@contextlib.contextmanager
def running_tls_redis(*, name: str = f"IP:{HOST}", asks_for_client: bool = False) -> Iterator[TlsServer]:
    """`name` is whom the server's certificate is for."""
    program = redis_program()
    with server_folder() as folder:
        certificates = Certificates(folder, name)
        port = free_port()
        options = ["--tls-port", str(port), "--tls-cert-file", str(certificates.cert)]
        options += ["--tls-key-file", str(certificates.key), "--tls-ca-cert-file", str(certificates.ca)]
        options += ["--tls-auth-clients", "yes" if asks_for_client else "no"]
        server = RedisServer(program, folder, tuple(options))
        server.start()
        try:
            yield TlsServer(server, port, certificates)
        finally:
            server.stop()
