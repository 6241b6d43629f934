import { ago, fullTime, moment } from "../format";
import { nowMs } from "../state/clock";

/** How long ago, moving; the exact time when one points at it. */
export function Ago({ ms }: { ms: number | null | undefined }) {
  return <time title={fullTime(ms)}>{ago(ms, nowMs.value)}</time>;
}

export function Moment({ ms }: { ms: number | null | undefined }) {
  return <time title={fullTime(ms)}>{moment(ms, nowMs.value)}</time>;
}
