// Jobs: lists, one job, actions, flows, failures, dead letters.
import { serverNow } from "../state/clock";
import { get, path, write, type Query } from "./client";
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
function asAsked<F extends { within?: string }>({ within, ...filter }: F): Omit<F, "within"> & { since_ms?: string } {
  return within ? { ...filter, since_ms: String(serverNow() - Number(within)) } : filter;
}

export const one = (ref: JobRef, abort?: AbortSignal): Promise<Job> => get(path`/queues/${ref.queue}/jobs/${ref.id}`, {}, abort);

export const logs = (ref: JobRef, start: number, end: number, abort?: AbortSignal): Promise<LogPage> =>
  get(path`/queues/${ref.queue}/jobs/${ref.id}/logs`, { start, end }, abort);

export const steps = (ref: JobRef, start: number, abort?: AbortSignal): Promise<{ items: Step[]; next_place: number | null }> =>
  get(path`/queues/${ref.queue}/jobs/${ref.id}/steps`, { start }, abort);

export const flow = (ref: JobRef, abort?: AbortSignal): Promise<FlowNode> => tree(ref, {}, abort);

const tree = (ref: JobRef, query: Query, abort?: AbortSignal): Promise<FlowNode> =>
  get(path`/queues/${ref.queue}/jobs/${ref.id}/flow`, query, abort);

const CHILDREN_AT_ONCE = 100;

/** How often more was asked of a node, by `queue/id`. */
export type Opened = ReadonlyMap<string, number>;

/** The tree with what was opened in it: more children of a node than the first, or its first if it lay too deep. */
export async function openedFlow(ref: JobRef, opened: Opened, abort?: AbortSignal): Promise<FlowNode> {
  const open = async (node: FlowNode): Promise<FlowNode> => {
    let { children, next_cursor } = node;
    for (let more = opened.get(`${node.queue}/${node.id}`) ?? 0; more > 0 && hasMore({ ...node, children, next_cursor }); more--) {
      const page = await tree(node, { cursor: next_cursor, depth: 2, limit: CHILDREN_AT_ONCE }, abort);
      children = [...children, ...page.children];
      next_cursor = page.next_cursor;
    }
    return { ...node, children: await Promise.all(children.map(open)), next_cursor };
  };
  return open(await flow(ref, abort));
}

/** Whether it has children that this tree does not hold. */
export function hasMore({ has_children, children, next_cursor }: FlowNode): boolean {
  return next_cursor !== null || (has_children && children.length === 0);
}

export const act = (ref: JobRef, action: "retry" | "promote" | "cancel", body: unknown = {}): Promise<unknown> =>
  write("POST", path`/queues/${ref.queue}/jobs/${ref.id}/${action}`, body);

export const signal = (ref: JobRef, name: string, payload: Json, key: string): Promise<unknown> =>
  write("POST", path`/queues/${ref.queue}/jobs/${ref.id}/signal`, { name, payload }, key);

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

export interface FailureFilter {
  queue?: string;
  /** `count`: the most frequent first; `newest`: the one by which a job failed last first. */
  order?: string;
  /** By which jobs failed in so many milliseconds up to now, and how many of these. */
  within?: string;
}

export const failures = (filter: FailureFilter, abort?: AbortSignal): Promise<Page<FailureGroup> & { has_more: boolean }> =>
  get("/failures", { ...asAsked(filter) }, abort);

export interface DeadLettersDone {
  done: number;
  passed_over: number;
  /** There are more. */
  next_cursor: string | null;
}

/** Few enough that one soon sees how it goes. */
const LETTERS_AT_ONCE = 2_000;

/** All of them, some at a time: what was done so far, until nothing is left. */
export async function* actOnDeadLetters(action: "retry" | "purge", filter: JobFilter): AsyncGenerator<DeadLettersDone> {
  const { since_ms: since, until_ms: until, state: _, ...words } = asAsked(filter);
  const times = { ...(since ? { since_ms: Number(since) } : {}), ...(until ? { until_ms: Number(until) } : {}) };
  const body = { filter: { ...words, ...times }, limit: LETTERS_AT_ONCE };
  let sum: DeadLettersDone = { done: 0, passed_over: 0, next_cursor: null };
  do {
    const some: DeadLettersDone = await write("POST", path`/dead-letters/${action}`, { ...body, cursor: sum.next_cursor });
    sum = { ...some, done: sum.done + some.done, passed_over: sum.passed_over + some.passed_over };
    yield sum;
  } while (sum.next_cursor !== null);
}
