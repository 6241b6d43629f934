// Short messages about what an action did; some can be taken back.
import { signal } from "@preact/signals";
import { asProblem } from "../api/problem";

export interface Toast {
  id: number;
  tone: "good" | "bad" | "plain";
  text: string;
  detail?: string;
  undo?: () => void;
  /** Of what goes on until it is done. */
  stop?: () => void;
  /** For how long it stays; a bar shows it where something can be undone. */
  forMs: number;
}

const SHORT_MS = 4_000;
const LONG_MS = 9_000;
const MOST = 4;
export const UNDO_MS = 6_000;

let last = 0;
export const toasts = signal<Toast[]>([]);

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function say(text: string, more: Partial<Omit<Toast, "id" | "text">> = {}): number {
  const toast: Toast = { id: ++last, tone: "good", text, forMs: more.undo ? UNDO_MS : SHORT_MS, ...more };
  toasts.value = fitting([...toasts.value, toast]);
  if (toast.forMs < Infinity) setTimeout(() => dismiss(toast.id), toast.forMs);
  return toast.id;
}

/** The newest ones, and what is under way: it can be stopped nowhere else. */
function fitting(all: Toast[]): Toast[] {
  const newest = all.filter((toast) => !toast.stop).slice(-MOST);
  return all.filter((toast) => toast.stop || newest.includes(toast));
}

export interface Progress {
  tell: (text: string) => void;
  isStopped: () => boolean;
  end: () => void;
}

/** What takes a while, in words that change, until it ends; whoever does it asks whether it was stopped. */
export function sayProgress(text: string): Progress {
  let isStopped = false;
  const change = (more: Partial<Toast>): void => {
    toasts.value = toasts.value.map((toast) => (toast.id === id ? { ...toast, ...more } : toast));
  };
  const stop = (): void => {
    isStopped = true;
    change({ detail: "It stops after those that are under way" });
  };
  const id = say(text, { tone: "plain", stop, forMs: Infinity });
  return { tell: (now) => change({ text: now }), isStopped: () => isStopped, end: () => dismiss(id) };
}

export function sayProblem(error: unknown, doing: string): void {
  const problem = asProblem(error);
  const detail = [problem.detail || problem.title, problem.code, problem.requestId ? `request ${problem.requestId}` : ""];
  say(`${doing} did not work`, { tone: "bad", detail: detail.filter(Boolean).join(" · "), forMs: LONG_MS });
}

/** Do it and say how it went; true if it did. */
export async function attempt(doing: string, done: string, action: () => Promise<unknown>, undo?: () => void): Promise<boolean> {
  try {
    await action();
  } catch (error) {
    sayProblem(error, doing);
    return false;
  }
  say(done, undo ? { undo } : {});
  return true;
}

const waiting = new Map<number, () => void>();

/** Do it in a few seconds unless someone takes it back; `settled` hears whether it was done. */
export function doUnlessUndone(text: string, action: () => void, undone: () => void): void {
  const timer = setTimeout(finish, UNDO_MS);
  const id = say(text, { tone: "plain", undo: takeBack });
  waiting.set(id, finish);

  function finish(): void {
    if (!waiting.delete(id)) return;
    clearTimeout(timer);
    action();
  }

  function takeBack(): void {
    if (!waiting.delete(id)) return;
    clearTimeout(timer);
    dismiss(id);
    undone();
  }
}

// Whoever closes the page has not taken anything back; requests outlive it by `keepalive`.
addEventListener("pagehide", () => {
  for (const finish of waiting.values()) finish();
});
