"""A real master with replicas, watched by sentinels that fail over."""

import contextlib
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.redis_server import HOST, RedisServer, free_port, redis_program, wait_until

SERVICE = "mymaster"
_DOWN_AFTER_MS = 1_000
_FAILOVER_MS = 5_000


class SentinelServer(RedisServer):
    """A sentinel. It is told of the others at once, since hearing of them by itself takes seconds."""

    def __init__(self, program: str, folder: Path) -> None:
        super().__init__(program, folder)
        self.id = secrets.token_hex(20)
        self.port = free_port()

    def watch(self, master: RedisServer, others: Sequence["SentinelServer"], *, quorum: int) -> None:
        lines = [
            f"sentinel myid {self.id}",
            f"sentinel monitor {SERVICE} {HOST} {master.port} {quorum}",
            f"sentinel down-after-milliseconds {SERVICE} {_DOWN_AFTER_MS}",
            f"sentinel failover-timeout {SERVICE} {_FAILOVER_MS}",
            *(f"sentinel known-sentinel {SERVICE} {HOST} {other.port} {other.id}" for other in others),
        ]
        (self.folder / "sentinel.conf").write_text("\n".join(lines) + "\n")
        self.start_again()

    def _first_words(self) -> tuple[str, ...]:
        return (str(self.folder / "sentinel.conf"), "--sentinel")


class Sentinels:
    """`servers` are the first master and its replicas, whatever they became."""

    def __init__(self, servers: Sequence[RedisServer], sentinels: Sequence[SentinelServer]) -> None:
        self.servers = servers
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        hosts = ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def master(self) -> RedisServer:
        """The master that most sentinels name."""
        named = [self._named_by(sentinel) for sentinel in self.sentinels]
        port = max(set(named), key=named.count)
        return next(server for server in self.servers if server.port == port)

    def _named_by(self, sentinel: SentinelServer) -> int:
        with sentinel.client() as client:
            named = client.sentinel_get_master_addr_by_name(SERVICE)
        assert isinstance(named, tuple)
        return int(named[1])

    def kill_master(self) -> RedisServer:
        """Kill the master; the sentinels will make another. The one that was killed."""
        master = self.master()
        master.kill()
        return master

    def fail_over(self) -> RedisServer:
        """Make another master while the old one lives on as a replica. The old one."""
        old = self.master()
        with self.sentinels[0].client() as client:
            client.execute_command("SENTINEL", "FAILOVER", SERVICE)  # type: ignore[no-untyped-call] # redis-py's own
        return old

    def wait_for_new_master(self, old: RedisServer) -> RedisServer:
        """Until all sentinels name another, and it takes writes."""
        wait_until(lambda: all(self._named_by(one) != old.port for one in self.sentinels), "there is a new master")
        wait_until(lambda: _role(self.master()) == "master", "the new master takes writes")
        return self.master()

    def wait_until_ready(self) -> None:
        wait_until(lambda: all(self._sees_all(sentinel) for sentinel in self.sentinels), "the sentinels see all")
        wait_until(lambda: all(_in_step(server) for server in self.servers[1:]), "the replicas are in step")

    def _sees_all(self, sentinel: SentinelServer) -> bool:
        with sentinel.client() as client:
            state = client.sentinel_master(SERVICE)
            replicas = client.sentinel_slaves(SERVICE)
        assert isinstance(state, dict)
        others = int(state["num-other-sentinels"]) == len(self.sentinels) - 1
        linked = [one for one in replicas if one["master-link-status"] == "ok"]
        return others and len(linked) == len(self.servers) - 1


def _role(server: RedisServer) -> str:
    with server.client() as client:
        return str(client.info("replication")["role"])


def _in_step(replica: RedisServer) -> bool:
    with replica.client() as client:
        return bool(client.info("replication").get("master_link_status") == "up")


@contextlib.contextmanager
def running_sentinels(*, replicas: int = 2, sentinels: int = 3, program: str | None = None) -> Iterator[Sentinels]:
    """One master, two replicas, three sentinels of which two decide."""
    program = program or redis_program()
    with contextlib.ExitStack() as ending:

        def folder() -> Path:
            return Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="bullpen-sentinel-")))

        # No delay: a replica is to be in step before the test begins.
        options = ("--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0")
        servers = [RedisServer(program, folder(), options)]
        servers[0].start()
        ending.callback(servers[0].kill)
        for _ in range(replicas):
            replica = RedisServer(program, folder(), (*options, "--replicaof", f"{HOST} {servers[0].port}"))
            replica.start()
            ending.callback(replica.kill)
            servers.append(replica)
        watchers = [SentinelServer(program, folder()) for _ in range(sentinels)]
        for watcher in watchers:
            ending.callback(watcher.kill)
            watcher.watch(servers[0], [one for one in watchers if one is not watcher], quorum=sentinels // 2 + 1)
        group = Sentinels(servers, watchers)
        group.wait_until_ready()
        yield group
