// What a task did, step after step, as it does it.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { isOver, type RunState, type RunTask, type TaskProblem, type TaskStep } from "../api/runs";
import { replayPage } from "../addresses";
import { count, duration, plural } from "../format";
import { useEarlier } from "../ui/earlier";
import { Card } from "../ui/page";
import { Moment } from "../ui/time";
import { runStateName, toneOfRun } from "../runs/state";
import { callsOf, shownSteps, type WholeCall } from "./steps";
import type { Chapter, ModelCall, Story, ToolUse } from "./story";
import { ToolCallView } from "./toolcall";
import { Words } from "./words";

interface StoryViewProps {
  task: RunTask;
  story: Story | undefined;
  steps: TaskStep[];
  /** The run is over, and not all of its log is here. */
  isReading: boolean;
  aside: ComponentChildren;
}

export function StoryView({ task, story, steps, isReading, aside }: StoryViewProps) {
  const calls = useMemo(() => callsOf(steps), [steps]);
  const chapters = story?.chapters ?? [];
  const { first, button } = useEarlier(chapters.length);
  return (
    <Card title="Steps" aside={aside}>
      <ol class="story" aria-live="off" aria-busy={isReading}>
        <Entry tone="waiting" title="Asked" atMs={task.created_ms}>
          <Words text={task.prompt} />
        </Entry>
        {task.forked_from !== null && <TakenOver task={task} steps={steps} />}
        {button && <li class="tone-waiting"><i class="dot" /><div>{button}</div></li>}
        {chapters.slice(first).map((chapter, at) => <ChapterView key={first + at} chapter={chapter} calls={calls} isFirst={isFirstStart(chapters, first + at)} />)}
        {chapters.length === 0 && <li class="tone-waiting story-waits"><i class="dot" /><div class="muted">{isReading ? "Its log is being read." : waitingFor(task.state)}</div></li>}
      </ol>
    </Card>
  );
}

/** Steps that the run was made with: it did not do them, and its log does not tell of them. */
function TakenOver({ task, steps }: { task: RunTask; steps: TaskStep[] }) {
  const taken = shownSteps(steps).filter((step) => step.ended_ms <= task.created_ms);
  return (
    <Entry tone="waiting-children" title="Forked from another run" atMs={task.created_ms} isSmall>
      <p class="timeline-detail">
        {taken.length === 0 ? "It begins anew" : `It has ${plural(taken.length, "step")} of that one, which were neither done nor paid again`}.{" "}
        {taken.length > 0 && <a href={replayPage(task.run_id)}>Look at them in the replay</a>}
      </p>
    </Entry>
  );
}

function waitingFor(state: RunState): string {
  if (state === "queued" || state === "pending") return "It waits for a worker. If none comes, look whether one runs that serves its queue.";
  return isOver(state) ? "Its log tells nothing of it." : "Nothing is told of it yet.";
}

function isFirstStart(chapters: Chapter[], at: number): boolean {
  return chapters.findIndex((chapter) => chapter.kind === "activation") === at;
}

interface ChapterProps {
  chapter: Chapter;
  calls: Map<string, WholeCall>;
  isFirst: boolean;
}

function ChapterView({ chapter, calls, isFirst }: ChapterProps) {
  switch (chapter.kind) {
    case "model":
      return <ModelCallView call={chapter} calls={calls} />;
    case "activation":
      return <Entry tone="active" title={isFirst ? "A worker began" : "Resumed"} atMs={chapter.atMs} note={isFirst ? "" : `activation ${chapter.number}; what was done is not done again`} isSmall />;
    case "retry":
      return (
        <Entry tone="delayed" title="Failed, to be tried again" atMs={chapter.atMs} note={`attempt ${chapter.attempt}`} isSmall>
          <ProblemLine problem={chapter.problem} />
        </Entry>
      );
    case "question":
      return (
        <Entry tone="prioritized" title="Asked a person" atMs={chapter.atMs} isSmall>
          <p class="timeline-detail">what became of the call of {chapter.question.tool}</p>
        </Entry>
      );
    case "note":
      return (
        <Entry tone="delayed" title={chapter.title} atMs={chapter.atMs} isSmall>
          <p class="timeline-detail">{chapter.message}</p>
        </Entry>
      );
    case "end":
      return <Entry tone={toneOfRun(chapter.how as RunState)} title={runStateName(chapter.how as RunState)} atMs={chapter.atMs} isSmall />;
  }
}

const NOTES: Record<ModelCall["state"], string> = {
  asked: "the model is asked",
  streaming: "the model answers",
  done: "",
  failed: "failed",
  stopped: "stopped before its end",
  lost: "its answer was lost with its worker",
};

const TONES: Record<ModelCall["state"], string> = {
  asked: "active is-live",
  streaming: "active is-live",
  done: "completed",
  failed: "failed",
  stopped: "waiting",
  lost: "delayed",
};

function ModelCallView({ call, calls }: { call: ModelCall; calls: Map<string, WholeCall> }) {
  const isLive = call.state === "streaming" || call.state === "asked";
  const took = call.endedMs !== null && call.state === "done" ? duration(Math.max(0, call.endedMs - call.atMs)) : "";
  const note = [call.model, NOTES[call.state], call.tokens ? `${count(call.tokens)} tokens` : "", took].filter(Boolean).join(" · ");
  return (
    <Entry tone={TONES[call.state]} title={`Step ${call.step}`} atMs={call.atMs} note={note}>
      {(call.text || isLive) && <Words text={call.text} isLive={isLive} />}
      <ProblemLine problem={call.problem} />
      {call.tools.length > 0 && (
        <div class="tools">
          {asAsked(call.tools, calls).map((use) => (
            <ToolCallView key={use.callId} use={use} whole={calls.get(use.callId)} />
          ))}
        </div>
      )}
    </Entry>
  );
}

function ProblemLine({ problem }: { problem: TaskProblem | null }) {
  if (problem === null) return null;
  return (
    <p class="timeline-detail is-bad">
      {problem.message} <code>{problem.code}</code>
    </p>
  );
}

/** In the order in which the model asked for them: side by side, any may begin first. */
function asAsked(tools: ToolUse[], calls: Map<string, WholeCall>): ToolUse[] {
  const place = (use: ToolUse): number => calls.get(use.callId)?.at ?? calls.size;
  return tools.toSorted((one, other) => place(one) - place(other));
}

interface EntryProps {
  tone: string;
  title: string;
  atMs: number;
  note?: string;
  isSmall?: boolean;
  children?: ComponentChildren;
}

function Entry({ tone, title, atMs, note = "", isSmall = false, children }: EntryProps) {
  return (
    <li class={`tone-${tone}${isSmall ? " is-small" : ""}`}>
      <i class="dot" />
      <div class="story-body">
        <div class="story-head">
          <b>{title}</b> {note && <span class="muted">{note}</span>}
          <Moment ms={atMs} />
        </div>
        {children}
      </div>
    </li>
  );
}
