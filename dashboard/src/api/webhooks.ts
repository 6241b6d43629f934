// Who is told of events over HTTP.
import { get, path, write } from "./client";
import type { JobRef, Page } from "./wire";

export const DELIVERIES = "bullpen-webhooks";

export interface Webhook {
  id: string;
  name: string;
  tenant: string | null;
  url: string;
  queues: string[] | null;
  kinds: string[];
  with_result: boolean;
  is_enabled: boolean;
  created_by: string;
  created_ms: number;
  changed_ms: number;
}

export interface NewWebhook {
  name: string;
  url: string;
  queues: string[] | null;
  kinds: string[];
  tenant?: string | null;
}

export const webhooks = (abort?: AbortSignal): Promise<Page<Webhook>> => get("/webhooks", {}, abort);
export const makeWebhook = (webhook: NewWebhook): Promise<Webhook & { secret: string | null }> =>
  write("POST", "/webhooks", webhook);
export const setWebhookEnabled = (id: string, isEnabled: boolean): Promise<Webhook> =>
  write("PATCH", path`/webhooks/${id}`, { is_enabled: isEnabled });
export const tryWebhook = (id: string): Promise<JobRef> => write("POST", path`/webhooks/${id}/test`);
export const removeWebhook = (id: string): Promise<unknown> => write("DELETE", path`/webhooks/${id}`);
