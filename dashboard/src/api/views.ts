// Filters that are kept under a name: one's own, and those that others share.
import { get, path, write } from "./client";
import type { Json, Page } from "./wire";

export interface SavedView {
  id: string;
  owner: string;
  name: string;
  page: string;
  query: Record<string, Json>;
  is_shared: boolean;
  changed_ms: number;
}

export type ViewChange = Pick<SavedView, "name" | "page" | "query" | "is_shared">;

export const views = (abort?: AbortSignal): Promise<Page<SavedView>> => get("/views", {}, abort);

/** Takes the place of one's own view of this name. */
export const saveView = ({ name, ...view }: ViewChange): Promise<SavedView> => write("PUT", path`/views/${name}`, view);

export const removeView = (name: string): Promise<unknown> => write("DELETE", path`/views/${name}`);
