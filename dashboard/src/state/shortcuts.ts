// Keys that do something: single ones, and two in a row such as `g j`.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export type Shortcuts = Record<string, (event: KeyboardEvent) => void>;

const BETWEEN_MS = 900;
const layers: Shortcuts[] = [];
let first: { key: string; atMs: number } | null = null;

export const isHelpOpen = signal(false);

addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event) || document.querySelector("dialog[open]")) return;
  const pairKey = first && performance.now() - first.atMs < BETWEEN_MS ? `${first.key} ${event.key}` : null;
  first = { key: event.key, atMs: performance.now() };
  for (const keys of [pairKey, event.key]) {
    const found = keys === null ? undefined : layers.findLast((layer) => keys in layer)?.[keys];
    if (found) {
      first = null;
      event.preventDefault();
      found(event);
      return;
    }
  }
});

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  if (!target) return false;
  if (target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
    if (event.key === "Escape") target.blur();
    return true;
  }
  // A button or link that has the focus keeps its own Enter.
  return event.key === "Enter" && target.matches("button, a, summary, input");
}

/** These keys while the component is shown; what was added last is asked first. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const names = Object.keys(shortcuts).join(",");
  // Before the page is painted: who sees a button may press its key.
  useLayoutEffect(() => {
    const layer: Shortcuts = {};
    for (const key of names.split(",")) layer[key] = (event) => latest.current[key]?.(event);
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, [names]);
}
