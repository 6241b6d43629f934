// All queues as they stand: shared by the navigation and the overview, kept fresh by the live stream.
import { effect, signal, untracked } from "@preact/signals";
import { asProblem, type Problem } from "../api/problem";
import { overview as loadOverview } from "../api/queues";
import type { LiveUpdate, Overview } from "../api/wire";
import { caller, may } from "../state/session";
import { behindMs, lastUpdate } from "./live";

const RELOAD_EVERY_MS = 2_000;
const RELOAD_ANYWAY_MS = 10_000;

export const overview = signal<Overview | null>(null);
export const overviewProblem = signal<Problem | null>(null);

let timer: ReturnType<typeof setTimeout> | undefined;
let lastLoadMs = 0;

export async function reloadOverview(): Promise<void> {
  lastLoadMs = Date.now();
  const asking = caller.peek();
  try {
    const found = await loadOverview();
    if (caller.peek() !== asking) return;
    overview.value = found;
    overviewProblem.value = null;
    behindMs.value = found.behind_ms;
  } catch (error) {
    overviewProblem.value = asProblem(error);
  }
}

effect(() => {
  // Another caller must not see what this one saw, not even until the next answer.
  overview.value = overviewProblem.value = null;
  if (caller.value === null || !untracked(() => may("queues:read"))) return;
  void reloadOverview();
  const anyway = setInterval(() => {
    if (!document.hidden && Date.now() - lastLoadMs >= RELOAD_ANYWAY_MS) void reloadOverview();
  }, RELOAD_ANYWAY_MS / 2);
  return () => clearInterval(anyway);
});

lastUpdate.subscribe((told) => {
  if (told === null) return;
  const known = overview.peek();
  if (known) overview.value = updated(known, told.update);
  // Counts move at once; rates and latencies follow with the next load.
  if (timer === undefined) {
    timer = setTimeout(() => {
      timer = undefined;
      if (!document.hidden) void reloadOverview();
    }, Math.max(0, lastLoadMs + RELOAD_EVERY_MS - Date.now()));
  }
});

function updated(known: Overview, update: LiveUpdate): Overview {
  return {
    ...known,
    queues: known.queues.map((queue) => {
      const change = update.queues?.[queue.name];
      return change ? { ...queue, ...change, counts: { ...queue.counts, ...change.counts } } : queue;
    }),
  };
}

/** Show it at once; the next answer of the server has the last word. */
export function showPaused(name: string, paused: boolean): void {
  const known = overview.peek();
  if (!known) return;
  overview.value = { ...known, queues: known.queues.map((queue) => (queue.name === name ? { ...queue, paused } : queue)) };
}
