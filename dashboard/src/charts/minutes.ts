// The last minutes as an even row: the server leaves out those in which nothing happened.
import type { SparkMinute } from "../api/wire";

const MINUTE_MS = 60_000;

export function evenMinutes<T extends { minute_ms: number }>(known: readonly T[], howMany: number, untilMs: number, blank: (minuteMs: number) => T): T[] {
  const byMinute = new Map(known.map((one) => [one.minute_ms, one]));
  const lastMs = Math.floor(untilMs / MINUTE_MS) * MINUTE_MS;
  return Array.from({ length: howMany }, (_, at) => {
    const minuteMs = lastMs - (howMany - 1 - at) * MINUTE_MS;
    return byMinute.get(minuteMs) ?? blank(minuteMs);
  });
}

export function quietMinute(minuteMs: number): SparkMinute {
  return { minute_ms: minuteMs, added: 0, completed: 0, failed: 0 };
}

/** A round number at or above the value, so that axes have labels that people say, and so has their middle. */
export function roundUp(value: number): number {
  if (value <= 2) return 2;
  const power = 10 ** Math.floor(Math.log10(value));
  const found = [1, 2, 4, 6, 10].find((step) => step * power >= value) ?? 10;
  return found * power;
}

/** Several queues as one. */
export function summed(rows: readonly SparkMinute[][]): SparkMinute[] {
  const sums = new Map<number, SparkMinute>();
  for (const one of rows.flat()) {
    const sum = sums.get(one.minute_ms) ?? quietMinute(one.minute_ms);
    sums.set(one.minute_ms, {
      minute_ms: one.minute_ms,
      added: sum.added + one.added,
      completed: sum.completed + one.completed,
      failed: sum.failed + one.failed,
    });
  }
  return [...sums.values()];
}
