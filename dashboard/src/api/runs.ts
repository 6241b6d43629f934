// Runs of agents: lists, one run, its log, its steps, and what can be done to it.
import { get, path, upload, url, write } from "./client";
import type { Json, Page } from "./wire";

export const RUN_STATES = ["pending", "queued", "running", "retrying", "suspended", "completed", "failed", "cancelled", "timeout"] as const;
export type RunState = (typeof RUN_STATES)[number];

interface RunHead {
  run_id: string;
  tenant: string;
  /** A part of the tenant. */
  workspace: string | null;
  created_by: string;
  state: RunState;
  last_event: number;
  created_ms: number;
  finished_ms: number | null;
}

export interface RunRow extends RunHead {
  /** A person is to answer; what else is suspended waits for agents. */
  is_asking: boolean;
  /** Its beginning. */
  prompt: string;
  started_ms: number | null;
  /** Micro-credits. */
  spent: number;
}

/** Micro-credits: what was spent, of what it may cost at most. */
export interface TaskBudget {
  most: number;
  spent: number;
  held: number;
  available: number;
}

export interface Question {
  signal: string;
  tool: string;
  arguments: string;
  text: string;
}

export interface TaskProblem {
  code: string;
  message: string;
  retryable: boolean;
  user_facing_message: string;
}

export interface TaskResult {
  status: string;
  stop_reason: string;
  output: string;
  error: TaskProblem | null;
  tokens_used: { input_tokens: number; output_tokens: number; total_tokens: number };
  credits_charged: number;
  duration_ms: number;
  steps_executed: number;
  tool_calls_made: number;
}

export interface RunTask {
  task_id: string;
  run_id: string;
  parent: string | null;
  task_type: string;
  state: RunState;
  queue: string;
  prompt: string;
  system: string;
  model: string;
  question: Question | null;
  result: TaskResult | null;
  budget: TaskBudget;
  forked_from: string | null;
  is_dry: boolean;
  created_ms: number;
  started_ms: number | null;
  finished_ms: number | null;
}

export interface Run extends RunHead {
  tasks: RunTask[];
}

export interface RunEvent {
  number: number;
  task_id: string;
  kind: string;
  at_ms: number;
  data: Record<string, Json>;
}

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

/** A place of a task's journal: a model was asked, a tool was called, a person answered, or it ended. */
export interface TaskStep {
  place: number;
  what: "llm" | "tool" | "answer" | "fan_out" | "end";
  name: string;
  state: string;
  attempts: number;
  started_ms: number;
  ended_ms: number;
  /** What the model said, or the tool answered; null while it is open. */
  text: string | null;
  model: string | null;
  calls: ToolCall[] | null;
  usage: Usage | null;
  call_id: string | null;
  is_error: boolean | null;
}

export interface Artifact {
  id: string;
  name: string;
  mime: string;
  size: number;
  created_ms: number;
}

const OVER: readonly RunState[] = ["completed", "failed", "cancelled", "timeout"];

export function isOver(state: RunState): boolean {
  return OVER.includes(state);
}

export interface RunFilter {
  /** `suspended` are those that ask a person. */
  state?: string;
  tenant?: string;
  workspace?: string;
  /** Words, or their beginnings. */
  q?: string;
}

export const list = (filter: RunFilter, cursor: string | null, limit: number, abort?: AbortSignal): Promise<Page<RunRow>> =>
  get("/runs", { ...filter, ...(filter.state === "suspended" ? { is_asking: true } : {}), cursor, limit }, abort);

export const one = (id: string, abort?: AbortSignal): Promise<Run> => get(path`/runs/${id}`, {}, abort);

export const task = (taskId: string, abort?: AbortSignal): Promise<RunTask> => get(path`/tasks/${taskId}`, {}, abort);

export const streamOf = (id: string, after: number): string => url(path`/runs/${id}/stream`, { after });

const STEPS_AT_ONCE = 1_000;

export const steps = (taskId: string, start: number, abort?: AbortSignal): Promise<{ items: TaskStep[]; next_place: number | null }> =>
  get(path`/tasks/${taskId}/steps`, { start, limit: STEPS_AT_ONCE }, abort);

/** One of two runs that are looked at beside each other. */
export interface CompareSide {
  run_id: string;
  task_id: string;
  state: RunState;
  prompt: string;
  model: string;
  steps: number;
  /** Micro-credits. */
  spent: number;
  forked_from: string | null;
  result: TaskResult | null;
}

export interface StepPair {
  place: number;
  /** Empty where both are the same. */
  differs: string[];
  one: TaskStep | null;
  other: TaskStep | null;
}

export interface Comparison {
  one: CompareSide;
  other: CompareSide;
  /** Of what they were asked. */
  differs: string[];
  /** The first place where they differ. */
  parts_at: number | null;
  differing: number;
  items: StepPair[];
  next_place: number | null;
}

/** All of it. */
export async function compare(id: string, other: string, abort?: AbortSignal): Promise<Comparison> {
  const ask = (start: number): Promise<Comparison> => get(path`/runs/${id}/compare`, { with: other, start, limit: STEPS_AT_ONCE }, abort);
  const found = await ask(0);
  for (let start = found.next_place; start !== null; ) {
    const page = await ask(start);
    found.items.push(...page.items);
    start = page.next_place;
  }
  return found;
}

export const inputs = (id: string, abort?: AbortSignal): Promise<Page<Artifact>> => get(path`/runs/${id}/inputs`, {}, abort);

/** A file for a run that is about to be asked for. */
export const addInput = (file: File, tenant: string | null, key: string): Promise<Artifact> =>
  upload("/files", { name: file.name, tenant }, file, key);

export const artifacts = (id: string, abort?: AbortSignal): Promise<Page<Artifact>> => get(path`/runs/${id}/artifacts`, {}, abort);

export const contentOf = (fileId: string): string => url(path`/files/${fileId}/content`);

/** What a run may use at most; what is not told is as its kind has it. */
export interface RunLimits {
  /** Whole credits. */
  max_credits?: number;
  max_steps?: number;
  max_tool_calls?: number;
  /** Of all calls. */
  max_total_tokens?: number;
  /** Of one answer. */
  max_tokens?: number;
  /** Seconds of work. */
  timeout?: number;
}

export interface NewRun extends RunLimits {
  prompt: string;
  tenant?: string;
  workspace?: string;
  model?: string;
  /** Ids of inputs. */
  files?: string[];
}

export interface Submitted {
  run_id: string;
  task_id: string;
}

export interface Forked extends Submitted {
  /** What it lacks of the run that it was forked from. */
  note: string | null;
}

export const submit = (run: NewRun, key: string): Promise<Submitted> => write("POST", "/tasks", run, key);

export const cancel = (id: string, reason: string): Promise<unknown> => write("POST", path`/runs/${id}/cancel`, { reason });

/** Either what came of the call, or that it is to be made. */
export type Answer = { result: string; is_error: boolean } | { again: true };

export const answer = (taskId: string, said: Answer): Promise<unknown> => write("POST", path`/tasks/${taskId}/answer`, said);

export interface Fork {
  /** The first place that is done anew; those before are taken over. */
  at: number;
  prompt?: string;
  edits?: { place: number; text: string }[];
  dry: boolean;
}

export const fork = (taskId: string, from: Fork, key: string): Promise<Forked> => write("POST", path`/tasks/${taskId}/fork`, from, key);
