// What changes on the server while one looks: one stream for the whole page.
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { url } from "../api/client";
import type { LiveUpdate } from "../api/wire";
import { may, me } from "../state/session";
import { openStream, type StreamState } from "./stream";

const BEHIND_FROM_MS = 3_000;
const ANYWAY_MS = 5_000;

export const streamState = signal<StreamState>("opening");
/** How old what the lists say may be, as the server last told; null while they were never complete. */
export const behindMs = signal<number | null>(0);
export const lastUpdate = signal<{ update: LiveUpdate; number: number } | null>(null);

export interface Sign {
  tone: "good" | "odd" | "bad" | "plain";
  text: string;
  /** What is read aloud where it changes, if not the text: how far behind would be told every second. */
  said?: string;
  hint?: string;
}

export const liveSign = computed<Sign>(() => {
  if (!may("queues:read")) return { tone: "plain", text: "Not live", hint: "Your role does not see queues: lists are loaded anew every few seconds" };
  if (streamState.value === "reconnecting") return { tone: "bad", text: "Reconnecting…" };
  if (streamState.value === "opening") return { tone: "odd", text: "Connecting…" };
  if (behindMs.value === null) return { tone: "odd", text: "Filling…", hint: "Lists are being made from what the store has: jobs may still be missing" };
  if (behindMs.value >= BEHIND_FROM_MS) return { tone: "odd", text: `Behind by ${Math.round(behindMs.value / 1000)} s`, said: "Behind" };
  return { tone: "good", text: "Live" };
});

let number = 0;

effect(() => {
  if (me.value === null || !may("queues:read")) return;
  const close = openStream(url("/live"), {
    kinds: ["queues"],
    onState: (state) => {
      streamState.value = state;
    },
    // Let every view look anew.
    onReturn: () => tell({ queues: {}, jobs_changed: {} }),
    onEvent: (_, data) => tell(data as LiveUpdate),
  });
  return close;
});

function tell(update: LiveUpdate | null): void {
  if (update) lastUpdate.value = { update, number: ++number };
}

/** Call `reload` soon after something changed, never more often than each `everyMs`. */
export function useLiveReload(reload: () => void, options: { queue?: string | undefined; everyMs?: number } = {}): void {
  const { queue, everyMs = 1_000 } = options;
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let lastAt = Date.now();
    const stop = lastUpdate.subscribe((told) => {
      if (told === null || timer !== undefined || !concerns(told.update, queue)) return;
      timer = setTimeout(() => {
        timer = undefined;
        lastAt = Date.now();
        if (!document.hidden) latest.current();
      }, Math.max(0, lastAt + everyMs - Date.now()));
    });
    // Rates fall and ages grow although nothing happens.
    const anyway = setInterval(() => {
      if (!document.hidden && Date.now() - lastAt > ANYWAY_MS) {
        lastAt = Date.now();
        latest.current();
      }
    }, ANYWAY_MS / 2);
    return () => {
      stop();
      clearTimeout(timer);
      clearInterval(anyway);
    };
  }, [queue, everyMs]);
}

function concerns(update: LiveUpdate, queue: string | undefined): boolean {
  const names = new Set([...Object.keys(update.queues ?? {}), ...Object.keys(update.jobs_changed ?? {})]);
  return queue === undefined || names.size === 0 || names.has(queue);
}
