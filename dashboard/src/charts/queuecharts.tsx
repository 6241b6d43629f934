// A queue's last hour: how much comes and goes, how long it waits and runs.
import type { Minute, Percentiles, SparkMinute } from "../api/wire";
import { count, duration } from "../format";
import { nowMs } from "../state/clock";
import { evenMinutes, quietMinute } from "./minutes";
import { LineChart } from "./linechart";

export const CHART_MINUTES = 60;

const UNKNOWN: Percentiles = { p50: null, p95: null, p99: null };

function blank(minuteMs: number): Minute {
  return { ...quietMinute(minuteMs), started: 0, retried: 0, wait_ms: UNKNOWN, run_ms: UNKNOWN };
}

interface RateChartProps {
  minutes: SparkMinute[];
  howMany?: number;
}

export function RateChart({ minutes, howMany = CHART_MINUTES }: RateChartProps) {
  const row = evenMinutes(minutes, howMany, nowMs.value, quietMinute);
  return (
    <LineChart
      label="Jobs a minute: added, completed, failed"
      times={row.map((minute) => minute.minute_ms)}
      show={count}
      lines={[
        { name: "added", tone: "waiting", values: row.map((minute) => minute.added) },
        { name: "completed", tone: "completed", isFilled: true, values: row.map((minute) => minute.completed) },
        { name: "failed", tone: "failed", values: row.map((minute) => minute.failed) },
      ]}
    />
  );
}

export function LatencyChart({ minutes, of }: { minutes: Minute[]; of: "wait_ms" | "run_ms" }) {
  const row = evenMinutes(minutes, CHART_MINUTES, nowMs.value, blank);
  return (
    <LineChart
      label={of === "wait_ms" ? "How long jobs waited, by minute" : "How long jobs ran, by minute"}
      times={row.map((minute) => minute.minute_ms)}
      show={duration}
      lines={[
        { name: "p50", tone: "active", isFilled: true, values: row.map((minute) => minute[of]?.p50 ?? null) },
        { name: "p95", tone: "prioritized", values: row.map((minute) => minute[of]?.p95 ?? null) },
        { name: "p99", tone: "delayed", values: row.map((minute) => minute[of]?.p99 ?? null) },
      ]}
    />
  );
}
