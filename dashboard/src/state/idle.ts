// Queues in which nothing is and lately nothing was: they stand last, folded, so that those at work are in sight.
import { signal } from "@preact/signals";
import type { Queue } from "../api/wire";

const KEY = "bullpen.idle";
/** One line to unfold is no shorter than the queue itself. */
const FEWEST = 2;

/** Whether they are unfolded, in the navigation and the overview alike. */
export const isIdleShown = signal(stored());

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) === "shown";
  } catch {
    return false;
  }
}

export function toggleIdle(): void {
  isIdleShown.value = !isIdleShown.value;
  try {
    if (isIdleShown.value) localStorage.setItem(KEY, "shown");
    else localStorage.removeItem(KEY);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

export interface Sorted {
  busy: Queue[];
  idle: Queue[];
}

/** Where all are idle, or all but one are busy, none is set apart. */
export function sorted(queues: Queue[]): Sorted {
  const idle = queues.filter(isIdle);
  if (idle.length < FEWEST || idle.length === queues.length) return { busy: queues, idle: [] };
  return { busy: queues.filter((queue) => !isIdle(queue)), idle };
}

function isIdle({ counts, paused, is_scanning, spark }: Queue): boolean {
  const { completed: _, ...held } = counts;
  const isEmpty = Object.values(held).every((jobs) => jobs === 0);
  return isEmpty && !paused && !is_scanning && spark.every((minute) => minute.added + minute.completed + minute.failed === 0);
}
