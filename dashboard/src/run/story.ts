// The log of a run, folded into what one looks at: activations, calls of models with their tools, retries, questions.
import type { Question, RunEvent, TaskProblem } from "../api/runs";

export interface ToolUse {
  callId: string;
  name: string;
  /** The beginning of it, as the log has it; the journal has all. */
  input: string;
  output: string | null;
  state: "running" | "done" | "failed" | "stopped" | "lost";
  starts: number;
  startedMs: number;
  tookMs: number | null;
}

export interface ModelCall {
  kind: "model";
  step: number;
  model: string;
  text: string;
  state: "asked" | "streaming" | "done" | "failed" | "stopped" | "lost";
  /** What it failed by. */
  problem: TaskProblem | null;
  tokens: number;
  tools: ToolUse[];
  atMs: number;
  endedMs: number | null;
}

export type Chapter =
  | ModelCall
  | { kind: "activation"; number: number; attempt: number; atMs: number }
  | { kind: "retry"; attempt: number; problem: TaskProblem | null; atMs: number }
  | { kind: "question"; question: Question; atMs: number }
  | { kind: "note"; title: string; message: string; atMs: number }
  | { kind: "end"; how: string; atMs: number };

/** Of one task. It is changed in place: a long log must not be copied with each of its lines. */
export interface Story {
  chapters: Chapter[];
  tokens: number;
  /** Micro-credits, as last told. */
  spent: number | null;
  percent: number | null;
}

export function newStory(): Story {
  return { chapters: [], tokens: 0, spent: null, percent: null };
}

const ENDS: Record<string, string> = { job_completed: "completed", job_failed: "failed", job_cancelled: "cancelled" };

export function tell(story: Story, event: RunEvent): void {
  const { kind, at_ms: atMs, data } = event;
  const how = ENDS[kind];
  if (how !== undefined) return end(story, how, data, atMs);
  switch (kind) {
    case "job_started":
      // A worker that comes to an end of what it does tells of it: the one before told nothing more.
      breakOff(story, "lost", null, atMs);
      story.chapters.push({ kind: "activation", number: whole(data["activation"]), attempt: whole(data["attempt"]), atMs });
      break;
    case "job_retrying": {
      const problem = problemIn(data);
      const isTold = breakOff(story, "failed", problem, atMs);
      story.chapters.push({ kind: "retry", attempt: whole(data["attempt"]), problem: isTold ? null : problem, atMs });
      break;
    }
    case "job_suspended":
      if (data["error"]) breakOff(story, "failed", problemIn(data), atMs);
      story.chapters.push(data["question"] ? { kind: "question", question: data["question"] as unknown as Question, atMs } : { kind: "note", title: "Waits", message: text(data["message"]), atMs });
      break;
    case "job_progress":
      if (data["current_step"] === undefined) {
        story.chapters.push({ kind: "note", title: "Note", message: text(data["message"]), atMs });
        break;
      }
      story.spent = whole(data["credits_used"]);
      story.percent = whole(data["percent_complete"]);
      break;
    case "step_started":
      story.chapters.push(newCall(whole(data["step"]), atMs));
      break;
    default:
      if (kind.startsWith("llm_")) tellOfModel(story, event);
      else if (kind.startsWith("tool_")) tellOfTool(story, event);
  }
}

function tellOfModel(story: Story, { kind, at_ms: atMs, data }: RunEvent): void {
  const call = lastCall(story) ?? begun(story, atMs);
  call.model = text(data["model"]) || call.model;
  if (kind === "llm_streaming") {
    if (data["restarted"]) call.text = "";
    call.text += text(data["content_delta"]);
    call.state = "streaming";
  } else if (kind === "llm_completed") {
    const tokens = whole(data["input_tokens"]) + whole(data["output_tokens"]);
    story.tokens += tokens - call.tokens;
    Object.assign(call, { text: text(data["content"]), tokens, state: "done", endedMs: atMs });
  }
}

function tellOfTool(story: Story, { kind, at_ms: atMs, data }: RunEvent): void {
  const callId = text(data["call_id"]);
  const known = toolIn(story, callId);
  if (kind === "tool_started") {
    if (known) Object.assign(known, { state: "running", starts: known.starts + 1, output: null, startedMs: atMs });
    else (lastCall(story) ?? begun(story, atMs)).tools.push(newUse(callId, data, atMs));
    return;
  }
  if (kind === "tool_progress") return;
  const use = known ?? newUse(callId, data, atMs);
  // A call that was refused before it began is told of once.
  if (!known) (lastCall(story) ?? begun(story, atMs)).tools.push(use);
  use.output = text(data["tool_output"]);
  use.state = kind === "tool_failed" ? "failed" : "done";
  use.tookMs = whole(data["duration_ms"]);
}

function end(story: Story, how: string, data: RunEvent["data"], atMs: number): void {
  const value = data["result"];
  const result = value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
  const status = text(result["status"]);
  breakOff(story, how === "failed" ? "failed" : "stopped", problemIn(result), atMs);
  story.chapters.push({ kind: "end", how: status || how, atMs });
}

/** What was under way comes to no end of its own. Whether a call of a model was, and so has the problem. */
function breakOff(story: Story, state: "failed" | "stopped" | "lost", problem: TaskProblem | null, atMs: number): boolean {
  let isTold = false;
  for (const chapter of story.chapters) {
    if (chapter.kind !== "model") continue;
    if (chapter.state === "asked" || chapter.state === "streaming") {
      Object.assign(chapter, { state, problem: state === "failed" ? problem : null, endedMs: atMs });
      isTold ||= chapter.problem !== null;
    }
    for (const use of chapter.tools) if (use.state === "running") use.state = state;
  }
  return isTold;
}

function problemIn(data: RunEvent["data"]): TaskProblem | null {
  return (data["error"] ?? null) as TaskProblem | null;
}

function newCall(step: number, atMs: number): ModelCall {
  return { kind: "model", step, model: "", text: "", state: "asked", problem: null, tokens: 0, tools: [], atMs, endedMs: null };
}

function newUse(callId: string, data: RunEvent["data"], atMs: number): ToolUse {
  return { callId, name: text(data["tool_name"]), input: text(data["tool_input"]), output: null, state: "running", starts: 1, startedMs: atMs, tookMs: null };
}

function begun(story: Story, atMs: number): ModelCall {
  const call = newCall(1, atMs);
  story.chapters.push(call);
  return call;
}

function lastCall(story: Story): ModelCall | undefined {
  return story.chapters.findLast((chapter) => chapter.kind === "model");
}

function toolIn(story: Story, callId: string): ToolUse | undefined {
  const called = story.chapters.findLast((chapter) => chapter.kind === "model" && chapter.tools.some((use) => use.callId === callId));
  return called?.kind === "model" ? called.tools.find((use) => use.callId === callId) : undefined;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function whole(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
