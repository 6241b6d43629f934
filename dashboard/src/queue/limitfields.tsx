// Limits as fields of a form, and as words; the same for queues, groups and plans.
import type { GroupLimits, Limits } from "../api/wire";
import { duration, plural } from "../format";
import { Field, type FormValues } from "../ui/form";

export function LimitFields({ limits }: { limits: Limits }) {
  return (
    <div class="form-row">
      <Field label="Jobs at once" name="concurrency" type="number" min={1} value={limits.concurrency} hint="empty: no limit" />
      <Field label="Starts" name="rate_max" type="number" min={1} value={limits.rate_max} hint="empty: no limit" />
      <Field label="Within milliseconds" name="rate_ms" type="number" min={1} value={limits.rate_ms} hint="1,000 is a second" />
    </div>
  );
}

export function GroupLimitFields({ limits }: { limits: GroupLimits }) {
  return (
    <>
      <LimitFields limits={limits} />
      <div class="form-row">
        <Field label="Weight" name="weight" type="number" min={1} value={limits.weight} hint="turns for each turn of others" />
        <Field label="Most that may wait" name="max_size" type="number" min={1} value={limits.max_size} hint="more are refused" />
      </div>
    </>
  );
}

export function limitsFrom(values: FormValues): Limits {
  return { concurrency: values.number("concurrency"), rate_max: values.number("rate_max"), rate_ms: values.number("rate_ms") };
}

export function groupLimitsFrom(values: FormValues): GroupLimits {
  return { ...limitsFrom(values), weight: values.number("weight"), max_size: values.number("max_size") };
}

export function limitsInWords(limits: GroupLimits | undefined): string {
  if (!limits) return "none";
  const words = [
    limits.concurrency && `${limits.concurrency} at once`,
    limits.rate_max && `${plural(limits.rate_max, "start")} per ${duration(limits.rate_ms)}`,
    limits.weight && limits.weight !== 1 && `weight ${limits.weight}`,
    limits.max_size && `at most ${limits.max_size} waiting`,
  ];
  return words.filter(Boolean).join(", ") || "none";
}
