"""Wide research: one task plans questions, other agents work on them side by side, and it joins what they found.

    plan ─▶ a task for each question ─▶ parked until all are over ─▶ join

It waits for no longer than the task's own timeout, and joins what there is by then.
Each part is a step: a worker that dies leaves a plan that is not made again, and questions that are asked once.
"""

from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.ending import budget_of
from bullpen.agents.family import CANCELLED
from bullpen.agents.kinds import TaskKind, route, urgency_at, usual_tools
from bullpen.agents.llm.provider import bad_answer
from bullpen.agents.llm.words import Reply, Request, ToolSpec, system, user
from bullpen.agents.loop.fitting import fitted, room_for
from bullpen.agents.loop.loop import AgentLoop, stop_of
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.steps import FAN_OUT, check_fits
from bullpen.agents.loop.words import Stop
from bullpen.agents.submitting import Prepared, add_task
from bullpen.agents.words import TaskResult, TaskTerms
from bullpen.agents.workshop import Workshop
from bullpen.errors import BadData, ResearchFailed
from bullpen.job.entries import JournalEntry
from bullpen.job.verdicts import Parked
from bullpen.journal.suspension import Suspension
from bullpen.records.credits.budget import account_of
from bullpen.records.credits.ledger import Ledger
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, Task, TaskState

CHILDREN = "children"
"""The signal that all tasks of a fan-out are over."""
_LOOK_AGAIN_MS = 300_000
_FOR_CHILDREN = 0.8
"""Of what the research may cost; the rest is for its plan and for the join."""
_encode = msgspec.json.Encoder().encode

_PLAN = "Split the research that you are asked for into independent questions, each of which another agent can answer."
_PLAN_TOOL = "research"
_JOIN = "Several agents have each answered one question. Answer what was asked for, from what they found and no more."


def _part_of(prompt: str) -> str:
    """Ends what an agent is asked: what its question is for."""
    return f"\n\n(A part of this research: {prompt})"


class Plan(msgspec.Struct, frozen=True):
    questions: list[str]


class Research:
    """One activation of such a task."""

    def __init__(self, workshop: Workshop, recorder: Recorder, loop: AgentLoop, task: Task, terms: TaskTerms) -> None:
        self._workshop = workshop
        self._database = workshop.records.database
        self._recorder = recorder
        self._loop = loop
        self._task = task
        self._terms = terms

    async def run(self) -> Stop:
        """Until what was found is joined. Suspension while others work; ResearchFailed if too few came to an answer."""
        questions = await self._plan()
        found = await self._found(await self._fan_out(questions))
        return stop_of(await self._join(questions, found))

    async def _plan(self) -> list[str]:
        if self._terms.questions:
            return list(self._terms.questions)
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": self._terms.width,
                }
            },
            "required": ["questions"],
        }
        request = Request(
            model=self._terms.model,
            messages=(system(_PLAN), user(self._task.prompt)),
            tools=(ToolSpec(_PLAN_TOOL, f"Have up to {self._terms.width} questions worked on.", schema),),
            tool_choice=_PLAN_TOOL,
            max_tokens=self._terms.reply_tokens,
        )
        # What is no plan must not be on record: each attempt would find it there.
        return self._questions_in(await self._loop.ask(request, check=self._questions_in))

    def _questions_in(self, reply: Reply) -> list[str]:
        try:
            plan = msgspec.convert(reply.calls[0].parsed(), Plan)
        except (IndexError, BadData, msgspec.ValidationError) as error:
            raise bad_answer(reply, "made no plan of questions") from error
        questions = [question for question in plan.questions if question.strip()][: self._terms.width]
        if not questions:
            raise bad_answer(reply, "made a plan without questions")
        return questions

    async def _fan_out(self, questions: list[str]) -> JournalEntry:
        """A task for each question, made once: the step that has their ids."""
        place = self._loop.take_places(1)
        entry = self._recorder.at(place)
        check_fits(entry, FAN_OUT)
        if entry is not None and entry.value is not None:
            return entry
        before = await self._children_before()
        prepared = [self._prepared(question, len(questions), before) for question in questions]
        jobs = [self._workshop.job_of(one, self._task.tenant) for one in prepared]
        ids = [str(job.id) for job in jobs]

        async def make(connection: AsyncConnection) -> None:
            runs, ledger = RunsOn(connection, self._database), Ledger(connection, self._database)
            await budget_of(self._task, self._terms).cover(ledger, sum(one.terms.estimate for one in prepared))
            for one, job in zip(prepared, jobs, strict=True):
                await add_task(
                    runs,
                    ledger,
                    one,
                    run_id=self._task.run,
                    tenant=self._task.tenant,
                    job=job,
                    parent=self._task.id,
                )
            if prepared:
                await runs.name_parts(self._task.run, ids, prepared[0].kind)

        told = NewProgress(ProgressKind.JOB_PROGRESS, {"message": f"{len(ids)} agents work on it", "tasks": ids})
        entry = await self._recorder.note(place, FAN_OUT, _encode(ids), told=[told], also=make)
        self._workshop.sent()
        return entry

    async def _children_before(self) -> dict[str, str]:
        """Of a research that this one was forked from: its tasks, by question as this one asks it."""
        if self._terms.forked_from is None:
            return {}
        runs = self._workshop.records.runs
        first = await runs.task(self._terms.forked_from)
        tail = _part_of(first.prompt)
        children = [task for task in await runs.tasks(first.run) if task.parent == first.id]
        return {child.prompt.removesuffix(tail): child.id for child in children}

    def _prepared(self, question: str, how_many: int, before: dict[str, str]) -> Prepared:
        share = int(self._terms.most * _FOR_CHILDREN) // how_many
        way = route(TaskKind.AGENT_RUN, urgency_at(self._terms.priority))
        terms = msgspec.structs.replace(
            self._terms,
            questions=(),
            tools=self._tools(),
            # A dry one answers what the task with the same question was answered, or nothing.
            forked_from=before.get(question) if self._terms.is_dry else None,
            priority=way.priority,
            estimate=max(1, share // 2),
            most=share,
            payer=account_of(self._task.id),
            above=budget_of(self._task, self._terms),
            attempts=way.attempts,
            timeout_s=min(way.timeout_s, self._terms.timeout_s),
        )
        prompt = question + _part_of(self._task.prompt)
        return Prepared(kind=TaskKind.AGENT_RUN, prompt=prompt, route=way, terms=terms)

    def _tools(self) -> tuple[str, ...]:
        """Those of the research: what its agents do is of another kind, which would have others."""
        if self._terms.tools is not None:
            return self._terms.tools
        return usual_tools(TaskKind(self._task.kind), [tool.name for tool in self._workshop.tools])

    async def _found(self, sent: JournalEntry) -> list[str | None]:
        """What they answered, once all are over or the time is; None for one that came to nothing."""
        tasks = await self._children(sent)
        if going := [task for task in tasks if not task.state.is_final]:
            # One that was forked behind its fan-out waits for tasks of the first, from its own start on.
            since_ms = max(sent.ended_ms, self._task.started_ms or 0)
            until_ms = since_ms + round(self._terms.timeout_s * 1000)
            if self._database.clock.now_ms() < until_ms:
                raise await self._suspended(len(going), until_ms)
            await self._end(going)
            tasks = await self._children(sent)
        found = [_answer_of(task) for task in tasks]
        answered = len(found) - found.count(None)
        needed = self._terms.needs_answers or 1
        if answered < min(needed, len(found)):
            raise ResearchFailed(f"{answered} of {len(found)} questions were answered, and {needed} are needed")
        return found

    async def _children(self, sent: JournalEntry) -> list[Task]:
        ids = msgspec.json.decode(sent.value or b"", type=list[str])
        return [await self._workshop.records.runs.task(child) for child in ids]

    async def _end(self, going: list[Task]) -> None:
        """Those that are its own."""
        for task in going:
            if task.parent == self._task.id:
                await self._workshop.ender.end(task, CANCELLED, reason="the research that made it waits no longer")

    async def _suspended(self, how_many: int, until_ms: int) -> Suspension:
        told = NewProgress(ProgressKind.JOB_SUSPENDED, {"message": f"waits for {how_many} agents"})
        async with self._database.writing(brief=True) as connection:
            await RunsOn(connection, self._database).move(self._task.id, TaskState.SUSPENDED, told)
        look_ms = min(self._database.clock.now_ms() + _LOOK_AGAIN_MS, until_ms)
        return Suspension(Parked(look_ms, (CHILDREN,), f"waits for {how_many} agents"))

    async def _join(self, questions: list[str], found: list[str | None]) -> Reply:
        answers = ["No answer was found." if answer is None else answer for answer in found]
        rest = "".join((_JOIN, self._task.prompt, *questions))
        model = self._workshop.models.model(self._terms.model)
        answers = fitted(answers, room_for(model, rest, self._terms.reply_tokens))
        parts = [f"## {question}\n\n{answer}" for question, answer in zip(questions, answers, strict=True)]
        asked = user(f"{self._task.prompt}\n\n# What was found\n\n" + "\n\n".join(parts))
        return await self._loop.ask(
            Request(model=self._terms.model, messages=(system(_JOIN), asked), max_tokens=self._terms.reply_tokens)
        )


def _answer_of(task: Task) -> str | None:
    if task.outcome is None:
        return None
    result = msgspec.json.decode(task.outcome, type=TaskResult)
    return result.output if result.error is None else None
