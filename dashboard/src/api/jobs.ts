// Jobs: lists, one job, actions, flows, failures, dead letters.
import { get, path, write } from "./client";
import type { Failure, FailureGroup, FlowNode, Job, JobRef, JobRow, Json, Outcome, Page } from "./wire";

export interface JobFilter {
  queue?: string;
  state?: string;
  tenant?: string;
  workspace?: string;
  name?: string;
  tag?: string;
  fingerprint?: string;
  error_kind?: string;
  since_ms?: string;
  until_ms?: string;
  /** Added in so many milliseconds up to now, whenever that is: only this page knows it. */
  within?: string;
  q?: string;
}

export const FILTER_WORDS = [
  "queue",
  "state",
  "tenant",
  "workspace",
  "name",
  "tag",
  "fingerprint",
  "error_kind",
  "since_ms",
  "until_ms",
  "within",
  "q",
] as const satisfies readonly (keyof JobFilter)[];

export interface Step {
  place: number;
  name: string;
  kind: string;
  state: string;
  value: Json;
  failure: Failure | null;
  until_ms: number | null;
  attempts: number;
  started_ms: number;
  ended_ms: number;
}

export interface LogPage {
  lines: string[];
  total: number;
}

export type JobAction = "retry" | "promote" | "cancel" | "remove";

export const list = (filter: JobFilter, cursor: string | null, limit: number, abort?: AbortSignal): Promise<Page<JobRow>> =>
  get("/jobs", { ...asAsked(filter), cursor, limit }, abort);

/** As the server takes it, at this moment. */
function asAsked({ within, ...filter }: JobFilter): JobFilter {
  return within ? { ...filter, since_ms: String(Date.now() - Number(within)) } : filter;
}

export const one = (ref: JobRef, abort?: AbortSignal): Promise<Job> => get(path`/queues/${ref.queue}/jobs/${ref.id}`, {}, abort);

export const logs = (ref: JobRef, start: number, end: number, abort?: AbortSignal): Promise<LogPage> =>
  get(path`/queues/${ref.queue}/jobs/${ref.id}/logs`, { start, end }, abort);

export const steps = (ref: JobRef, abort?: AbortSignal): Promise<Page<Step>> =>
  get(path`/queues/${ref.queue}/jobs/${ref.id}/steps`, {}, abort);

export const flow = (ref: JobRef, abort?: AbortSignal): Promise<FlowNode> =>
  get(path`/queues/${ref.queue}/jobs/${ref.id}/flow`, {}, abort);

export const act = (ref: JobRef, action: "retry" | "promote" | "cancel", body: unknown = {}): Promise<unknown> =>
  write("POST", path`/queues/${ref.queue}/jobs/${ref.id}/${action}`, body);

export const signal = (ref: JobRef, name: string, payload: Json): Promise<unknown> =>
  write("POST", path`/queues/${ref.queue}/jobs/${ref.id}/signal`, { name, payload });

export interface JobChange {
  data?: Json;
  delay?: number;
  priority?: number;
}

export const change = (ref: JobRef, changes: JobChange): Promise<unknown> =>
  write("PATCH", path`/queues/${ref.queue}/jobs/${ref.id}`, changes);

export const remove = (ref: JobRef): Promise<unknown> => write("DELETE", path`/queues/${ref.queue}/jobs/${ref.id}`);

export const actOnMany = (action: JobAction, jobs: JobRef[]): Promise<{ items: Outcome[] }> =>
  write("POST", "/jobs/actions", { action, jobs: jobs.map(({ queue, id }) => ({ queue, id })) });

export const failures = (filter: { queue?: string; tenant?: string }, abort?: AbortSignal): Promise<Page<FailureGroup>> =>
  get("/failures", { ...filter }, abort);

export interface DeadLettersDone {
  done: number;
  passed_over: number;
}

export const actOnDeadLetters = (action: "retry" | "purge", filter: JobFilter): Promise<DeadLettersDone> => {
  const { since_ms: since, until_ms: until, state: _, ...words } = asAsked(filter);
  const times = { ...(since ? { since_ms: Number(since) } : {}), ...(until ? { until_ms: Number(until) } : {}) };
  return write("POST", path`/dead-letters/${action}`, { filter: { ...words, ...times } });
};
