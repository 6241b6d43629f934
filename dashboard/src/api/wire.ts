// What the server sends, as its contract names it. Times are wall milliseconds.

export const STATES = [
  "waiting",
  "prioritized",
  "delayed",
  "active",
  "waiting-children",
  "completed",
  "failed",
] as const;
export type State = (typeof STATES)[number];

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
  behind_ms?: number | null;
}

export interface Me {
  name: string;
  role: string;
  tenant: string | null;
  kind: "open" | "key" | "jwt" | "session";
  csrf: string | null;
  permissions: string[];
  version: string;
  store: string;
  records: string;
}

export interface Counts {
  waiting: number;
  prioritized: number;
  delayed: number;
  active: number;
  waiting_children: number;
  completed: number;
  failed: number;
}

export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export interface SparkMinute {
  minute_ms: number;
  added: number;
  completed: number;
  failed: number;
}

export interface Rates {
  added_per_s: number;
  completed_per_s: number;
  failed_per_s: number;
}

export interface Queue {
  name: string;
  paused: boolean;
  counts: Counts;
  oldest_waiting_ms: number | null;
  rates: Rates;
  wait_ms: Percentiles;
  run_ms: Percentiles;
  spark: SparkMinute[];
  behind_ms: number | null;
  is_scanning: boolean;
}

export interface Limits {
  concurrency?: number | null;
  rate_max?: number | null;
  rate_ms?: number | null;
}

export interface GroupLimits extends Limits {
  weight?: number | null;
  max_size?: number | null;
}

export interface SharedLimits extends Limits {
  closed_until_ms?: number | null;
}

export interface QueueDetail extends Queue {
  /** Of all tenants together: not told to those who have one. */
  limits: SharedLimits | null;
  tenants?: Record<string, Partial<Record<string, number>>> | null;
  more_tenants?: number;
}

export interface Overview {
  queues: Queue[];
  workers: number;
  totals: Partial<Counts>;
  behind_ms: number | null;
}

export interface Minute extends SparkMinute {
  started: number;
  retried: number;
  wait_ms: Percentiles;
  run_ms: Percentiles;
}

export interface Group {
  name: string;
  waiting: number;
  active: number;
  paused: boolean;
  closed_until_ms: number | null;
  oldest_ms: number | null;
  limits: GroupLimits;
}

export interface JobRow {
  queue: string;
  id: string;
  state: State;
  name: string;
  tenant: string | null;
  workspace: string | null;
  tags: string[];
  fields: Record<string, Json>;
  priority: number;
  attempts_made: number;
  error: string | null;
  error_kind: string | null;
  error_type: string | null;
  fingerprint: string | null;
  added_ms: number;
  run_at_ms: number | null;
  started_ms: number | null;
  finished_ms: number | null;
}

export interface JobRef {
  queue: string;
  id: string;
}

export interface Failure {
  message: string;
  kind: string;
  type: string;
  stack: string;
}

export interface Moment {
  at_ms: number;
  kind: string;
  detail: string | null;
  activation: number | null;
}

/** One time that the job was claimed. */
export interface Activation {
  number: number;
  started_ms: number;
  ended_ms: number | null;
  outcome: "running" | "completed" | "failed" | "retried" | "lost" | "set-aside" | "waiting-children" | "unknown";
  error: string | null;
  error_kind: string | null;
  stack: string | null;
  crash: string | null;
  worker: string | null;
  next_ms: number | null;
}

export interface Job extends JobRef {
  name: string;
  state: State;
  data: Json;
  options: Record<string, Json>;
  priority: number;
  attempts_made: number;
  epoch: number;
  crashes: Record<string, number>;
  added_ms: number;
  run_at_ms: number | null;
  started_ms: number | null;
  finished_ms: number | null;
  progress: Json;
  result: Json;
  failure: Failure | null;
  stacks: string[];
  worker: string | null;
  cancelling: string | null;
  note: string | null;
  parked: string[] | null;
  tenant: string | null;
  workspace: string | null;
  group: string | null;
  tags: string[];
  headers: Record<string, string>;
  trace_id: string | null;
  parent: JobRef | null;
  schedule: string | null;
  has_children: boolean;
  timeline: Moment[];
  activations: Activation[];
  forgotten: number;
}

/** A job that is gone has neither name nor state. */
export interface FlowNode extends JobRef {
  name: string | null;
  state: State | null;
  has_children: boolean;
  children: FlowNode[];
  next_cursor: string | null;
}

export interface FailureGroup {
  queue: string;
  name: string;
  fingerprint: string;
  count: number;
  newest_ms: number | null;
  oldest_ms: number | null;
  error: string;
}

export interface Outcome extends JobRef {
  outcome: string;
}

export interface LiveUpdate {
  queues: Record<string, Partial<Queue>>;
  jobs_changed: Record<string, string[]>;
}
