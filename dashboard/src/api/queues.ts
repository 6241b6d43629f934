// Queues, their limits and groups, schedules, workers.
import { get, getAll, path, write } from "./client";
import type { Group, GroupLimits, JobRef, Limits, Minute, Overview, Page, QueueDetail } from "./wire";

export interface Schedule extends JobRef {
  name: string;
  tenant: string | null;
  cron: string | null;
  every_ms: number | null;
  tz: string | null;
  paused: boolean;
  ended: boolean;
  next_ms: number | null;
  next_runs: number[];
  ticks: number;
  skipped: number;
  overlap: string;
}

export interface Worker {
  name: string;
  state: string;
  queues: Record<string, number>;
  host: string;
  pid: number;
  started_ms: number;
  beat_ms: number;
  running: (JobRef & { name?: string })[];
  stuck: JobRef[];
  jobs_done: number;
}

export interface GroupPage extends Page<Group> {
  default: GroupLimits | null;
}

export type QueueAction = "pause" | "resume" | "drain" | "clean" | "obliterate" | "retry-all" | "promote-all";

export const overview = (abort?: AbortSignal): Promise<Overview> => get("/overview", {}, abort);

export const queue = (name: string, abort?: AbortSignal): Promise<QueueDetail> => get(path`/queues/${name}`, {}, abort);

export const minutes = (name: string, sinceMs: number, untilMs: number, abort?: AbortSignal): Promise<Page<Minute>> =>
  get(path`/queues/${name}/minutes`, { since_ms: sinceMs, until_ms: untilMs }, abort);

interface Acted {
  count?: number;
  next_cursor?: string | null;
}

/** To the end: what the server ends at a limit goes on from there. */
export async function act(name: string, action: QueueAction, body: object = {}): Promise<void> {
  let cursor: string | null = null;
  do {
    const from: object = cursor === null ? {} : { cursor };
    const acted: Acted = await write("POST", path`/queues/${name}/${action}`, { ...body, ...from });
    cursor = acted.next_cursor ?? null;
  } while (cursor !== null);
}

/** As the server takes them: a rate is said as a whole, and what is not said is no limit. */
function limitsBody({ rate_max: max, rate_ms: ms, ...others }: GroupLimits): object {
  return { ...others, rate: max ? { max, per: (ms ?? 1_000) / 1_000 } : null };
}

export const setLimits = (name: string, { concurrency = null, rate_max = null, rate_ms = null }: Limits): Promise<unknown> =>
  write("PUT", path`/queues/${name}/limits`, limitsBody({ concurrency, rate_max, rate_ms }));

export const clearLimits = (name: string): Promise<unknown> => write("DELETE", path`/queues/${name}/limits`);

export const groups = (name: string, cursor: string | null, abort?: AbortSignal): Promise<GroupPage> =>
  get(path`/queues/${name}/groups`, { cursor }, abort);

/** Takes the place of all limits that the group had. */
export const setGroup = (name: string, group: string, limits: GroupLimits): Promise<unknown> =>
  write("PUT", path`/queues/${name}/groups/${group}`, limitsBody(limits));

export const actOnGroup = (name: string, group: string, action: "pause" | "resume"): Promise<unknown> =>
  write("POST", path`/queues/${name}/groups/${group}/${action}`);

export const schedules = (abort?: AbortSignal): Promise<Page<Schedule>> => getAll("/schedules", abort);

export const actOnSchedule = (ref: JobRef, action: "pause" | "resume" | "run"): Promise<unknown> =>
  write("POST", path`/queues/${ref.queue}/schedules/${ref.id}/${action}`);

export const removeSchedule = (ref: JobRef): Promise<unknown> =>
  write("DELETE", path`/queues/${ref.queue}/schedules/${ref.id}`);

export const workers = (abort?: AbortSignal): Promise<Page<Worker>> => get("/workers", {}, abort);
