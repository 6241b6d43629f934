// Wall time as the server has it: all times that are shown are the server's, and the clock of a browser may be wrong.
import { signal } from "@preact/signals";

/** What the server tells is of whole seconds, and some time on its way: less than this is no difference. */
const SAME_MS = 2_000;

let aheadMs = 0;

export function serverNow(): number {
  return Date.now() + aheadMs;
}

/** From the header `Date` of each answer. */
export function learnServerTime(date: string | null): void {
  const toldMs = Date.parse(date ?? "");
  if (Math.abs(toldMs - serverNow()) <= SAME_MS || Number.isNaN(toldMs)) return;
  aheadMs = toldMs - Date.now();
  nowMs.value = serverNow();
}

/** A tick each second: ages on the page move together. */
export const nowMs = signal(serverNow());

setInterval(() => {
  if (!document.hidden) nowMs.value = serverNow();
}, 1_000);
