import { signal } from "@preact/signals";

/** Wall time, a tick each second: ages on the page move together. */
export const nowMs = signal(Date.now());

setInterval(() => {
  if (!document.hidden) nowMs.value = Date.now();
}, 1_000);
