// Numbers, durations and times as people read them; all digits are set in tabular figures.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const ONE_DIGIT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const MINUTE = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

export const NONE = "–";
/** In which all times are shown: the browser's own. */
export const ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY_MS = 24 * HOUR;

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  if (Math.abs(value) < 100_000) return WHOLE.format(value);
  if (Math.abs(value) < 1_000_000) return `${ONE_DIGIT.format(value / 1_000)}k`;
  return `${ONE_DIGIT.format(value / 1_000_000)}M`;
}

const MICRO = 1_000_000;
const SMALLEST = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const TWO_DIGITS = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

/** Credits out of the micro-credits that the server counts in; a price below a hundredth keeps its first digits. */
export function credits(micro: number | null | undefined): string {
  if (micro === null || micro === undefined) return NONE;
  const whole = micro / MICRO;
  return whole !== 0 && Math.abs(whole) < 0.01 ? SMALLEST.format(whole) : TWO_DIGITS.format(whole);
}

export function bytes(size: number | null | undefined): string {
  if (size === null || size === undefined) return NONE;
  if (size < 1_024) return `${size} B`;
  return size < 1_048_576 ? `${ONE_DIGIT.format(size / 1_024)} KiB` : `${ONE_DIGIT.format(size / 1_048_576)} MiB`;
}

export function rate(perSecond: number | null | undefined): string {
  if (perSecond === null || perSecond === undefined) return NONE;
  if (perSecond === 0) return "0";
  if (perSecond < 0.1) return "<0.1";
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NONE;
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < 60 * SECOND) return `${Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return pair(ms, 60 * SECOND, "min", SECOND, "s");
  if (ms < DAY_MS) return pair(ms, HOUR, "h", 60 * SECOND, "min");
  return pair(ms, DAY_MS, "d", HOUR, "h");
}

function pair(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  const whole = Math.floor(ms / big);
  const rest = Math.floor((ms % big) / small);
  return rest && whole < 10 ? `${whole} ${bigName} ${rest} ${smallName}` : `${whole} ${bigName}`;
}

export function ago(atMs: number | null | undefined, nowMs: number): string {
  if (!atMs) return NONE;
  const gone = nowMs - atMs;
  if (gone < -SECOND) return `in ${duration(-gone)}`;
  return gone < SECOND ? "now" : `${duration(Math.floor(gone / SECOND) * SECOND).replace(/\.0 s$/, " s")} ago`;
}

export function clockTime(atMs: number | null | undefined): string {
  return atMs ? TIME.format(atMs) : NONE;
}

export function minuteTime(atMs: number): string {
  return MINUTE.format(atMs);
}

export function isToday(atMs: number, nowMs: number): boolean {
  return new Date(atMs).toDateString() === new Date(nowMs).toDateString();
}

export function dayAndTime(atMs: number): string {
  return `${DAY.format(atMs)} ${TIME.format(atMs)}`;
}

/** The time of day; with the day where that is another one. */
export function moment(atMs: number | null | undefined, nowMs: number): string {
  if (!atMs) return NONE;
  return isToday(atMs, nowMs) ? TIME.format(atMs) : `${DAY.format(atMs)} ${MINUTE.format(atMs)}`;
}

export function fullTime(atMs: number | null | undefined): string {
  return atMs ? FULL.format(atMs) : "";
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
