"""Flows of both sides: a parent here may have children there, whoever added the tree and whoever runs what."""

from typing import Any

from bullpen import Child, ChildState, EventKind, FailureKind, FlowProducer, JobRef, OnFailure, State
from bullpen.job.record import ClaimedJob
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import SettleOutcome
from tests.interop.cells import TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import Peer
from tests.interop.us import QUEUE, Us

PARENTS = "parents"
_POLICIES = {
    OnFailure.FAIL_PARENT: "failParentOnFailure",
    OnFailure.CONTINUE_PARENT: "continueParentOnFailure",
    OnFailure.IGNORE: "ignoreDependencyOnFailure",
    OnFailure.REMOVE: "removeDependencyOnFailure",
}
"""As BullMQ calls them."""
_STATES: dict[OnFailure | None, State] = dict.fromkeys(_POLICIES, State.WAITING) | {None: State.WAITING_CHILDREN}
"""Where a parent is once its only child has failed."""


def _tree(*children: dict[str, Any], **opts: Any) -> dict[str, Any]:
    below = [{"name": "part", "queueName": QUEUE, **child} for child in children]
    return {"name": "root", "queueName": PARENTS, "data": {"gather": True}, "opts": opts, "children": below}


async def _plant(us: Us, *parts: tuple[dict[str, Any], OnFailure | None]) -> tuple[JobRef, list[JobRef]]:
    flows = FlowProducer(us.store)
    children = [flows.prepare(QUEUE, "part", data, on_failure=policy) for data, policy in parts]
    node = await flows.add(flows.prepare(PARENTS, "root", {"gather": True}, children=children))
    return node.job.ref, [child.job.ref for child in node.children]


async def _claim_parent(us: Us) -> ClaimedJob:
    assert await us.store.wait([PARENTS], timeout_ms=20_000)
    claimed = await us.store.claim({PARENTS: 1}, worker="bullpen-1", lease_ms=30_000, request="parent")
    (parent,) = claimed.jobs
    return parent


async def _children(us: Us, parent: JobRef) -> dict[JobRef, Child]:
    return {child.ref: child for child in (await us.store.children(parent)).children}


def _key(peer: Peer, job_id: str) -> str:
    return f"{peer.prefix}:{QUEUE}:{job_id}"


# ── results ──────────────────────────────────────────────────────────────────────────────


@cell("flow: children here, parent there", TO_BULLPEN)
async def test_we_run_the_children_of_a_peer_s_parent(us: Us, peer: Peer) -> None:
    """Its worker runs the parent with our results, woken by our last completion."""
    await peer.call("work", queue=PARENTS, options={})
    tree = await peer.call("flow", tree=_tree({"data": {"n": 1}}, {"data": {"n": 2}}))
    async with us.working():
        await peer.hears("completed", queue=PARENTS, id=tree["id"])
    parent = await peer.call("job", queue=PARENTS, id=tree["id"])
    echoed = {key: value["echo"] for key, value in parent["returnvalue"].items()}
    assert echoed == {_key(peer, child["id"]): {"n": n} for n, child in enumerate(tree["children"], 1)}


@cell("flow: children here, parent there", TO_PEER)
async def test_the_peer_runs_a_parent_that_we_added(us: Us, peer: Peer) -> None:
    await peer.call("work", queue=PARENTS, options={})
    root, children = await _plant(us, ({"n": 1}, None), ({"n": 2}, None))
    async with us.working():
        await peer.hears("completed", queue=PARENTS, id=root.id)
    parent = await peer.call("job", queue=PARENTS, id=root.id)
    assert set(parent["returnvalue"]) == {_key(peer, child.id) for child in children}


@cell("flow: parent here, children there", TO_BULLPEN)
async def test_we_run_a_parent_whose_children_the_peer_ran(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    tree = await peer.call("flow", tree=_tree({"data": {"n": 1}}, {"data": {"n": 2}}))
    parent = await _claim_parent(us)
    told = await _children(us, parent.lease.ref)
    assert {child.state for child in told.values()} == {ChildState.COMPLETED}
    assert {ref.id for ref in told} == {child["id"] for child in tree["children"]}
    assert all(b'"echo":{"n":' in (child.result or b"") for child in told.values())
    settled = await us.store.settle([Settlement(parent.lease, Completed(b"1"))], request="settle")
    assert list(settled) == [SettleOutcome.SETTLED]
    assert (await peer.call("job", queue=PARENTS, id=tree["id"]))["state"] == "completed"


@cell("flow: parent here, children there", TO_PEER)
async def test_the_peer_runs_the_children_of_our_parent(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    root, children = await _plant(us, ({"n": 1}, None), ({"n": 2}, None))
    assert (await us.store.job(children[0])).parent == root
    parent = await _claim_parent(us)
    assert parent.lease.ref == root
    assert (await _children(us, root)).keys() == set(children)


# ── failures ─────────────────────────────────────────────────────────────────────────────


@cell("flow: failure of a child", TO_BULLPEN)
async def test_our_failure_means_to_a_peer_s_parent_what_it_says(us: Us, peer: Peer) -> None:
    """For each policy of the peer's own flow."""
    roots: dict[OnFailure | None, dict[str, Any]] = {}
    for policy in (None, *_POLICIES):
        opts = {} if policy is None else {_POLICIES[policy]: True}
        child = {"data": {"unrecoverable": "no"}, "opts": opts}
        roots[policy] = await peer.call("flow", tree=_tree(child))
    async with us.working():
        await us.events(EventKind.FAILED, len(roots))
    for policy, root in roots.items():
        seen = await peer.call("job", queue=PARENTS, id=root["id"])
        assert seen["state"] == _STATES[policy], policy
        if policy == OnFailure.FAIL_PARENT:
            assert seen["deferredFailure"] == f"child {_key(peer, root['children'][0]['id'])} failed"
    await peer.call("work", queue=PARENTS, options={})
    failing = roots[OnFailure.FAIL_PARENT]["id"]
    assert (await peer.hears("failed", queue=PARENTS, id=failing))["message"].startswith("child ")


@cell("flow: failure of a child", TO_PEER)
async def test_the_peer_s_failure_means_to_our_parent_what_we_say(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    roots = {policy: await _plant(us, ({"unrecoverable": "no"}, policy)) for policy in (None, *_POLICIES)}
    for _, (child,) in roots.values():
        await peer.hears("failed", id=child.id)
    for policy, (root, (child,)) in roots.items():
        parent = await us.store.job(root)
        assert parent.state == _STATES[policy], policy
        told = await _children(us, root)
        if policy == OnFailure.FAIL_PARENT:
            assert parent.doomed is not None
            assert parent.doomed.kind == FailureKind.CHILD_FAILED
            assert told[child].state == ChildState.FAILED
        elif policy in (OnFailure.IGNORE, OnFailure.CONTINUE_PARENT):
            assert (told[child].state, told[child].reason) == (ChildState.IGNORED, "no")


# ── steering ─────────────────────────────────────────────────────────────────────────────


@cell("flow: a child retried", TO_BULLPEN)
async def test_a_child_that_we_retry_is_pending_for_the_peer_s_parent(us: Us, peer: Peer) -> None:
    """And its result, the second time, is there for the peer."""
    policy = {_POLICIES[OnFailure.IGNORE]: True}
    tree = await peer.call("flow", tree=_tree({"data": {"unrecoverable": "no"}, "opts": policy}))
    child = tree["children"][0]["id"]
    async with us.working():
        await us.told_of(child, EventKind.FAILED)
    await us.store.retry(JobRef(QUEUE, child))
    await us.settle(await us.claim(), Completed(b"7"))
    assert await peer.call("childrenValues", queue=PARENTS, id=tree["id"]) == {_key(peer, child): 7}


@cell("flow: a child retried", TO_PEER)
async def test_a_child_that_the_peer_retries_is_pending_for_our_parent(us: Us, peer: Peer) -> None:
    root, (child,) = await _plant(us, ({"fail": "once", "times": 1}, OnFailure.IGNORE))
    await peer.call("work", options={})
    await peer.hears("failed", id=child.id)
    await peer.call("rest")
    await peer.call("retry", id=child.id, state="failed")
    assert (await _children(us, root))[child].state == ChildState.PENDING


@cell("flow: a child removed", TO_BULLPEN)
async def test_a_child_that_we_remove_is_not_waited_for_by_the_peer_s_parent(us: Us, peer: Peer) -> None:
    tree = await peer.call("flow", tree=_tree({"data": {}}))
    await us.store.remove(JobRef(QUEUE, tree["children"][0]["id"]))
    assert (await peer.call("job", queue=PARENTS, id=tree["id"]))["state"] == "waiting"


@cell("flow: a child removed", TO_PEER)
async def test_a_child_that_the_peer_removes_is_not_waited_for_by_our_parent(us: Us, peer: Peer) -> None:
    root, (child,) = await _plant(us, ({}, None))
    await peer.call("remove", id=child.id)
    assert (await us.store.job(root)).state == State.WAITING
    assert await _children(us, root) == {}
