"""What the worker of one application finds out about a provider, that of another knows."""

import contextlib
from collections.abc import AsyncGenerator

import msgspec
import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.llm.deltas import Delta
from bullpen.agents.llm.health import Health, HealthRules
from bullpen.agents.llm.models import table_of
from bullpen.agents.llm.openai import OpenAIProvider
from bullpen.agents.llm.provider import complete
from bullpen.agents.llm.scripted import CallTurn, Fault, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage, user
from bullpen.agents.tools.policy import Policy
from bullpen.agents.words import Submitted
from bullpen.errors import JobMissing, ModelError, ProvidersDown, QueueMissing
from bullpen.job.record import JobRecord
from bullpen.job.state import State
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressEvent, ProgressKind, TaskState
from tests.agents.llm.asking import endpoint
from tests.agents.llm.openai_server import whole
from tests.agents.llm.wire_server import serving
from tests.agents.runs.conftest import TENANT, working
from tests.agents.runs.models import MODEL, MODELS
from tests.support.places import Place
from tests.worker.waiting import until

_PATIENCE_S = 60
_REQUEST = Request(model=MODEL, messages=(user("hello?"),))


async def test_a_provider_that_is_down_is_not_asked_by_others(place: Place, records: Records) -> None:
    asked: list[Request] = []

    def fails(request: Request) -> Turn:
        asked.append(request)
        return Turn(error=Fault("model-timeout"))

    async with Bullpen(place.store()) as one, Bullpen(place.store()) as other:
        async with (
            Agents(one, records, providers=[ScriptedProvider(fails)], models=MODELS) as first,
            Agents(other, records, providers=[ScriptedProvider(fails)], models=MODELS) as second,
        ):
            router, their_router = (await first.workshop()).provider, (await second.workshop()).provider
            for _ in range(HealthRules().down_after):
                with pytest.raises(ModelError, match="as the script says"):
                    await complete(router, _REQUEST)
            with pytest.raises(ProvidersDown, match="no provider of it is in health"):
                await complete(their_router, _REQUEST)
    assert len(asked) == HealthRules().down_after


@pytest.mark.parametrize(
    "status, said, code",
    [
        (400, {"message": "temperature: too hot"}, "E007"),
        (401, {"message": "Incorrect API key"}, "E007"),
        (403, {"message": "not in your country"}, "E007"),
        (404, {"code": "model_not_found", "message": "no gpt"}, "E001"),
    ],
)
async def test_a_refusal_for_good_fails_each_task_at_once_and_never_the_provider(
    place: Place, records: Records, status: int, said: dict[str, str], code: str
) -> None:
    """Were the provider down after some of them, the next tasks would wait a minute for each of their attempts."""
    tasks = HealthRules().down_after + 1
    model = {"provider": "openai", "context_window": 100_000, "max_output": 4_096, "input": "1", "output": "1"}
    models = table_of({"version": "test", "models": {"gpt": model}})
    async with serving(whole({"error": said}, status)) as server, Bullpen(place.store()) as pen:
        providers = [OpenAIProvider(endpoint(server.url))]
        async with Agents(pen, records, providers=providers, models=models, model="gpt") as agents, working(agents):
            await agents.deposit(TENANT, 1_000)
            for _ in range(tasks):
                sent = await agents.submit("go", tenant=TENANT)
                error = (await agents.result(sent.run_id, timeout=_PATIENCE_S)).error
                assert error is not None
                assert (error.code, error.retryable) == (code, False)
                assert f"HTTP {status}" in error.message
                events = [event.kind async for event in agents.follow(sent.run_id)]
                assert ProgressKind.JOB_RETRYING not in events
        assert len(server.asked) == tasks


class _Outage:
    """A provider that answers nobody, not even a probe, until it is over."""

    name = "scripted"

    def __init__(self) -> None:
        self.is_over = False
        self.asked = 0
        self._scripted = ScriptedProvider(self._turn)

    def _turn(self, request: Request) -> Turn:
        self.asked += 1
        if not self.is_over:
            return Turn(error=Fault("model-timeout"))
        if request.tools and request.messages[-1].role is not Role.TOOL:
            return Turn(calls=(CallTurn("trip", {}, id="c1"),), usage=Usage(1, 1))
        return Turn(text="back again", usage=Usage(1, 1))

    def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        return self._scripted.stream(request)

    async def probe(self) -> None:
        if not self.is_over:
            raise ModelError("it is away", provider=self.name)

    async def close(self) -> None:
        """It has nothing open."""


async def _bring_down(agents: Agents) -> None:
    router = (await agents.workshop()).provider
    for _ in range(HealthRules().down_after):
        with pytest.raises(ModelError, match="as the script says"):
            await complete(router, _REQUEST)


async def _make_probe_due(records: Records) -> None:
    def due(written: bytes) -> bytes:
        return msgspec.json.encode(msgspec.structs.replace(msgspec.json.decode(written, type=Health), probe_at_ms=1))

    await records.providers.change("scripted", due)


async def _waits(agents: Agents, sent: Submitted) -> JobRecord:
    """Its job, when it has been set aside; the relay brings it, a moment after the answer."""

    async def look() -> JobRecord | None:
        task = (await agents.tasks(sent.run_id))[0]
        with contextlib.suppress(QueueMissing, JobMissing):
            return await agents.pen.queue(task.queue).job(task.id).record()
        return None

    def is_set_aside(job: JobRecord | None) -> bool:
        return job is not None and job.state is State.DELAYED and job.epoch > 0

    found = await until(look, is_set_aside)
    assert found is not None
    return found


async def _suspensions(agents: Agents, sent: Submitted) -> list[ProgressEvent]:
    events = await (await agents.records()).runs.events(sent.run_id)
    return [event for event in events if event.kind is ProgressKind.JOB_SUSPENDED]


async def test_a_task_outlasts_an_outage_with_no_attempt_used(place: Place, records: Records) -> None:
    outage = _Outage()
    async with Bullpen(place.store()) as one, Bullpen(place.store()) as other, Bullpen(place.store()) as third:
        async with (
            Agents(one, records, providers=[outage], models=MODELS) as asking,
            Agents(other, records, providers=[outage], models=MODELS) as early,
            Agents(third, records, providers=[outage], models=MODELS) as late,
        ):
            await asking.deposit(TENANT, 1_000)
            await _bring_down(asking)
            sent = await asking.submit("go", tenant=TENANT)
            async with working(asking):
                job = await _waits(asking, sent)
                assert "none is in health" in (job.note or "")
                assert job.run_at_ms is not None
                assert job.run_at_ms > job.added_ms
            await _make_probe_due(records)
            await asking.pen.queue(job.queue).job(job.id).promote()
            async with working(early):
                looked = await until(lambda: _waits(asking, sent), lambda now: now.epoch > job.epoch)
            assert looked.attempts_made == 0
            [told] = await _suspensions(asking, sent)
            assert told.data["error"]["code"] == "E007"
            outage.is_over = True
            await _make_probe_due(records)
            await asking.pen.queue(job.queue).job(job.id).promote()
            async with working(late):
                result = await asking.result(sent.run_id, timeout=_PATIENCE_S)
            assert (result.status, result.output) == ("completed", "back again")
            events = [event async for event in asking.follow(sent.run_id)]
            [started] = [event for event in events if event.kind is ProgressKind.JOB_STARTED]
            assert started.data["attempt"] == 1
    assert outage.asked == HealthRules().down_after + 1, "no task asked in vain"


async def test_an_outage_in_the_midst_of_a_task_uses_no_attempt(place: Place, records: Records) -> None:
    outage = _Outage()
    outage.is_over = True
    async with Bullpen(place.store()) as one, Bullpen(place.store()) as other:
        later = Agents(other, records, providers=[outage], models=MODELS)
        first = Agents(one, records, providers=[outage], models=MODELS)

        @first.tool(policy=Policy.READ_ONLY)
        async def trip() -> str:
            """Trip over the cable."""
            outage.is_over = False
            await _bring_down(first)
            return "tripped"

        later.tools.put(trip)
        async with first, later:
            await first.deposit(TENANT, 1_000)
            sent = await first.submit("go", tenant=TENANT, tools=("trip",))
            async with working(first):
                job = await _waits(first, sent)
            assert job.attempts_made == 0
            assert len(await _suspensions(first, sent)) == 1
            assert (await first.run(sent.run_id)).state is TaskState.QUEUED
            outage.is_over = True
            await _make_probe_due(records)
            await first.pen.queue(job.queue).job(job.id).promote()
            async with working(later):
                assert (await first.result(sent.run_id, timeout=_PATIENCE_S)).output == "back again"
            events = [event async for event in first.follow(sent.run_id)]
            starts = [event.data["attempt"] for event in events if event.kind is ProgressKind.JOB_STARTED]
            assert starts == [1, 1]


async def test_an_outage_longer_than_a_task_may_take_fails_it_by_its_code(place: Place, records: Records) -> None:
    outage = _Outage()
    parrot = {"provider": "spare", "context_window": 100_000, "max_output": 4_096, "input": "1", "output": "1"}
    models = table_of({"version": "test", "models": {MODEL: {**parrot, "provider": "scripted"}, "spare": parrot}})
    spare = ScriptedProvider(lambda _: Turn(text="spared", usage=Usage(1, 1)), name="spare")
    async with Bullpen(place.store()) as pen:
        async with Agents(pen, records, providers=[outage, spare], models=models) as agents:
            await agents.deposit(TENANT, 1_000)
            await _bring_down(agents)
            async with working(agents, concurrency=1):
                sent = await agents.submit("go", tenant=TENANT, model=MODEL, timeout=1.5)
                other = await agents.submit("go", tenant=TENANT, model="spare")
                assert (await agents.result(other.run_id, timeout=_PATIENCE_S)).output == "spared"
                result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            assert result.error is not None
            assert (result.status, result.error.code, result.steps_executed) == ("failed", "E007", 0)
            assert "no provider of it is in health" in result.error.message
            assert len(await _suspensions(agents, sent)) == 1
            assert (result.credits_charged, (await records.credits.balance(TENANT)).held) == (0, 0)
