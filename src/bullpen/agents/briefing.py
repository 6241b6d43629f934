"""What a task's terms give to its loop: tools and limits."""

from bullpen.agents.forking import recorded_tools
from bullpen.agents.kinds import TaskKind, usual_tools
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.streaming import Streaming
from bullpen.agents.loop.words import LoopLimits
from bullpen.agents.sandbox.base import Level
from bullpen.agents.surroundings import Around
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.agents.words import TaskTerms
from bullpen.agents.workshop import Workshop
from bullpen.observing import Observers
from bullpen.records.journal import SqlJournal, read_all
from bullpen.records.runs.words import Task


async def tools_of(workshop: Workshop, task: Task, terms: TaskTerms, *, behind: Level) -> Toolbox:
    """Those that it may use behind these walls; BadOption names one that was asked for and is not here."""
    there, wanted = workshop.tools, terms.tools
    if wanted is None:
        wanted = usual_tools(TaskKind(task.kind), [tool.name for tool in there])
    tools = there.allowed(wanted).priced(workshop.models)
    if not terms.is_dry:
        return tools.behind(behind)
    first = terms.forked_from
    journal = SqlJournal(workshop.records.database)
    return recorded_tools(tools, [] if first is None else await read_all(journal, first))


def options_of(terms: TaskTerms, around: Around, streaming: Streaming, observers: Observers) -> LoopOptions:
    limits = LoopLimits(
        steps=terms.steps,
        tool_calls=terms.tool_calls,
        tokens=terms.tokens,
        seconds=terms.timeout_s,
        reply_tokens=terms.reply_tokens,
    )
    return LoopOptions(
        limits=limits,
        temperature=terms.temperature,
        context=around.context,
        saves=around.saves,
        on_delta=streaming.take,
        before_finish=streaming.flush,
        observers=observers,
    )
