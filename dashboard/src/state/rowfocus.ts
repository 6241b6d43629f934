// Moving through a list by keyboard: j, k, and what other keys do with the row one is at.
import { useState } from "preact/hooks";
import { useShortcuts, type Shortcuts } from "./shortcuts";

export function useRowFocus(keys: readonly string[], actions: Record<string, (key: string | null) => void>): string | null {
  const [focused, setFocused] = useState<string | null>(null);
  const at = focused === null ? -1 : keys.indexOf(focused);

  function move(by: number): void {
    const next = keys[Math.min(keys.length - 1, Math.max(0, at + by))];
    if (next === undefined) return;
    setFocused(next);
    const row = document.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(next)}"]`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  }

  const shortcuts: Shortcuts = { j: () => move(1), k: () => move(-1) };
  for (const [key, action] of Object.entries(actions)) {
    shortcuts[key] = () => action(at < 0 ? null : focused);
  }
  useShortcuts(shortcuts);
  return at < 0 ? null : focused;
}
