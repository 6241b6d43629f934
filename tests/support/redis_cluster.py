"""A real Redis Cluster: masters that share the slots, and steps that move a slot between them."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import redis
import redis.crc

from tests.support.redis_server import HOST, RedisServer, free_port, redis_program, wait_until

_SLOTS = redis.crc.REDIS_CLUSTER_HASH_SLOTS
_MIGRATE_MS = 5_000


def slot_of(key: str) -> int:
    return redis.crc.key_slot(key.encode())


class ClusterNode(RedisServer):
    def __init__(self, program: str, folder: Path, node_timeout_ms: int) -> None:
        self.bus_port = free_port()
        options = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"]
        options += ["--cluster-node-timeout", str(node_timeout_ms)]
        options += ["--cluster-port", str(self.bus_port), "--repl-diskless-sync-delay", "0"]
        super().__init__(program, folder, tuple(options))
        self.id = ""
        """Its name in the cluster."""


class RedisCluster:
    """`url` names all nodes; `nodes` are the masters, each with a third of the slots if there are three."""

    def __init__(self, nodes: Sequence[ClusterNode], replicas: Sequence[ClusterNode]) -> None:
        self.nodes = nodes
        self.replicas = replicas

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    # ── looking ──────────────────────────────────────────────────────────────────────────

    def owner(self, slot: int) -> ClusterNode:
        """The node that owns the slot, as the living masters see it."""
        (owner,) = {self._owner_seen_by(node, slot) for node in self.nodes if node.is_running}
        return next(node for node in (*self.nodes, *self.replicas) if node.port == owner)

    def _owner_seen_by(self, node: ClusterNode, slot: int) -> int | None:
        for first, last, master, *_ in _ask(node, "CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return int(master[1])
        return None

    def other_than(self, node: ClusterNode) -> ClusterNode:
        return next(other for other in self.nodes if other is not node)

    def keys(self, node: ClusterNode, slot: int) -> set[str]:
        """The slot's keys that are on this node."""
        return set(_ask(node, "CLUSTER", "GETKEYSINSLOT", str(slot), "1000000"))

    def on_either_side(self, node: ClusterNode, *commands: tuple[str, ...]) -> list[Any]:
        """The answers of this node, though it may be about to get the slot and not own it yet."""
        answers = []
        with contextlib.closing(redis.Redis(port=node.port, single_connection_client=True)) as client:
            for words in commands:
                client.execute_command("ASKING")  # type: ignore[no-untyped-call] # redis-py's own
                answers.append(client.execute_command(*words))  # type: ignore[no-untyped-call] # redis-py's own
        return answers

    # ── moving a slot: begin, move keys, end ─────────────────────────────────────────────

    def begin_migration(self, slot: int, source: ClusterNode, target: ClusterNode) -> None:
        """From here on a command with a key that the source has not is refused by it with ASK."""
        _ask(target, "CLUSTER", "SETSLOT", str(slot), "IMPORTING", source.id)
        _ask(source, "CLUSTER", "SETSLOT", str(slot), "MIGRATING", target.id)

    def move_keys(self, slot: int, source: ClusterNode, target: ClusterNode, *, count: int | None = None) -> list[str]:
        """Move that many keys, or all; the keys that were moved."""
        moved = sorted(self.keys(source, slot))[:count]
        if moved:
            _ask(source, "MIGRATE", HOST, str(target.port), "", "0", str(_MIGRATE_MS), "KEYS", *moved)
        return moved

    def end_migration(self, slot: int, target: ClusterNode) -> None:
        """The target owns the slot, and all masters know it."""
        # The target first: a source that gives the slot away before is told of nobody who has it.
        for node in (target, *(node for node in self.nodes if node is not target)):
            _ask(node, "CLUSTER", "SETSLOT", str(slot), "NODE", target.id)

    def cancel_migration(self, slot: int, source: ClusterNode, target: ClusterNode) -> None:
        for node in (source, target):
            _ask(node, "CLUSTER", "SETSLOT", str(slot), "STABLE")

    def migrate_slot(self, slot: int, target: ClusterNode) -> None:
        """All steps at once. Keys that are made meanwhile are moved too."""
        source = self.owner(slot)
        self.begin_migration(slot, source, target)
        while self.move_keys(slot, source, target):
            pass
        self.end_migration(slot, target)

    # ── making it ────────────────────────────────────────────────────────────────────────

    def form(self) -> None:
        everybody = [*self.nodes, *self.replicas]
        for node in everybody:
            node.id = _ask(node, "CLUSTER", "MYID")
        self._share_slots()
        for node in everybody[1:]:
            _ask(everybody[0], "CLUSTER", "MEET", HOST, str(node.port), str(node.bus_port))
        wait_until(lambda: all(self._knows_all(node) for node in everybody), "all nodes know each other")
        for replica, master in zip(self.replicas, self.nodes, strict=False):
            _ask(replica, "CLUSTER", "REPLICATE", master.id)
        wait_until(self._is_complete, "the cluster is well")

    def _share_slots(self) -> None:
        share = _SLOTS // len(self.nodes)
        for n, node in enumerate(self.nodes):
            last = _SLOTS - 1 if n == len(self.nodes) - 1 else (n + 1) * share - 1
            _ask(node, "CLUSTER", "SET-CONFIG-EPOCH", str(n + 1))
            _ask(node, "CLUSTER", "ADDSLOTSRANGE", str(n * share), str(last))

    def _knows_all(self, node: ClusterNode) -> bool:
        lines = _ask(node, "CLUSTER", "NODES").splitlines()
        known = [line for line in lines if "handshake" not in line and " connected" in line]
        return len(known) == len(self.nodes) + len(self.replicas)

    def _is_complete(self) -> bool:
        return all(self._is_well(node) for node in (*self.nodes, *self.replicas))

    def _is_well(self, node: ClusterNode) -> bool:
        lines = _ask(node, "CLUSTER", "INFO").splitlines()
        if not {"cluster_state:ok", f"cluster_slots_assigned:{_SLOTS}"} <= set(lines):
            return False
        replicas = sum(" slave " in line or ",slave " in line for line in _ask(node, "CLUSTER", "NODES").splitlines())
        return replicas == len(self.replicas) and (node not in self.replicas or _is_in_step(node))


def _is_in_step(replica: ClusterNode) -> bool:
    with replica.client() as client:
        return bool(client.info("replication").get("master_link_status") == "up")


def _ask(node: ClusterNode, *words: str) -> Any:
    with contextlib.closing(_plain_client(node)) as client:
        return client.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own


def _plain_client(node: ClusterNode) -> "redis.Redis":
    client = redis.Redis(port=node.port, socket_timeout=10, decode_responses=True)
    # As the server says it: redis-py would make dictionaries of some answers.
    client.response_callbacks.clear()
    return client


@contextlib.contextmanager
def running_cluster(
    masters: int = 3, *, replicas: int = 0, node_timeout_ms: int = 2_000, program: str | None = None
) -> Iterator[RedisCluster]:
    """Masters, and replicas of the first of them: one each. A node that is silent for the time is replaced."""
    program = program or redis_program()
    with contextlib.ExitStack() as ending:
        nodes = []
        for _ in range(masters + replicas):
            folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="bullpen-cluster-"))
            node = ClusterNode(program, Path(folder), node_timeout_ms)
            node.start()
            ending.callback(node.kill)
            nodes.append(node)
        cluster = RedisCluster(nodes[:masters], nodes[masters:])
        cluster.form()
        yield cluster
