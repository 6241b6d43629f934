// What a queue did in the last half hour, as small bars: completed above, failed in red on top.
import type { SparkMinute } from "../api/wire";
import { plural } from "../format";
import { nowMs } from "../state/clock";
import { evenMinutes, quietMinute } from "./minutes";

export const SPARK_MINUTES = 30;
const WIDTH = 120;
const HEIGHT = 28;
const STEP = WIDTH / SPARK_MINUTES;

export function Sparkline({ spark, name }: { spark: SparkMinute[]; name: string }) {
  const row = evenMinutes(spark, SPARK_MINUTES, nowMs.value, quietMinute);
  const most = Math.max(1, ...row.map((minute) => minute.completed + minute.failed));
  const completed = row.reduce((sum, minute) => sum + minute.completed, 0);
  const failed = row.reduce((sum, minute) => sum + minute.failed, 0);
  const label = `${name}, last ${SPARK_MINUTES} minutes: ${plural(completed, "job")} completed, ${plural(failed, "job")} failed`;
  return (
    <svg class="sparkline" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <title>{label}</title>
      <line class="spark-ground" x1="0" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      {row.map((minute, at) => {
        const good = (minute.completed / most) * (HEIGHT - 2);
        const bad = minute.failed ? Math.max((minute.failed / most) * (HEIGHT - 2), 1.5) : 0;
        const x = at * STEP + 0.5;
        return (
          <g key={minute.minute_ms}>
            {good > 0 && <rect class="fill-completed" x={x} y={HEIGHT - good} width={STEP - 1} height={good} rx="0.8" />}
            {bad > 0 && <rect class="fill-failed" x={x} y={HEIGHT - good - bad} width={STEP - 1} height={bad} rx="0.8" />}
          </g>
        );
      })}
    </svg>
  );
}
