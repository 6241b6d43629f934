// What runs of agents lean on: providers of models, sandboxes.
import { get } from "./client";
import type { Page } from "./wire";

export interface Provider {
  name: string;
  state: "healthy" | "degraded" | "down";
  /** Null where it was never found otherwise. */
  since_ms: number | null;
  last_error: string | null;
  failures: number;
  next_probe_ms: number | null;
  limited_until_ms: number | null;
}

export interface Sandbox {
  id: string;
  worker: string;
  driver: string;
  isolation: string;
  state: string;
  tenant: string | null;
  since_ms: number;
}

export const providers = (abort?: AbortSignal): Promise<Page<Provider>> => get("/providers", {}, abort);
export const sandboxes = (abort?: AbortSignal): Promise<Page<Sandbox>> => get("/sandboxes", {}, abort);
