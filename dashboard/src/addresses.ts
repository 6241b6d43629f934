// Where each thing is shown; the router's patterns in `routes.ts` are their mirror.
import { path } from "./api/client";
import type { JobRef } from "./api/wire";
import { addressOf } from "./router";

export const queuePage = (queue: string): string => path`/queues/${queue}`;
export const jobPage = (job: JobRef): string => path`/queues/${job.queue}/jobs/${job.id}`;
export const flowPage = (job: JobRef): string => path`/queues/${job.queue}/jobs/${job.id}/flow`;
export const jobsPage = (filter: Record<string, string> = {}): string => addressOf("/jobs", filter);
export const failuresPage = (queue: string): string => addressOf("/failures", { queue });
export const deadLettersPage = (filter: Record<string, string> = {}): string => addressOf("/dead-letters", filter);
export const runsPage = (filter: Record<string, string> = {}): string => addressOf("/runs", filter);
export const runPage = (id: string): string => path`/runs/${id}`;
export const taskPage = (id: string, task: string): string => addressOf(runPage(id), { task });
export const replayPage = (id: string, at: Record<string, string> = {}): string => addressOf(path`/runs/${id}/replay`, at);
export const comparePage = (id: string, other: string): string => addressOf(path`/runs/${id}/compare`, { with: other });
