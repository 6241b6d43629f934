// Which jobs are listed: the address holds it, these fields change it.
import { FILTER_WORDS, type JobFilter } from "../api/jobs";
import { moment } from "../format";
import { overview } from "../live/overview";
import { place } from "../router";
import { nowMs } from "../state/clock";
import { me } from "../state/session";
import { Chip, Pick, Search, Typed } from "../ui/filters";
import { ALL_STATES, stateName } from "../ui/state";

const KINDS = ["error", "unrecoverable", "timeout", "stalled", "cancelled", "expired", "child-failed"];
export const WITHIN: [ms: string, name: string][] = [
  ["900000", "Last 15 minutes"],
  ["3600000", "Last hour"],
  ["86400000", "Last day"],
  ["604800000", "Last week"],
];

export function filterHere(fixed: JobFilter = {}): JobFilter {
  const found: JobFilter = {};
  for (const word of FILTER_WORDS) {
    const value = place.value.query.get(word);
    if (value) found[word] = value;
  }
  return { ...found, ...fixed };
}

interface FiltersProps {
  /** What the page itself decides, and what is therefore not asked. */
  fixed?: JobFilter;
}

export function Filters({ fixed = {} }: FiltersProps) {
  const filter = filterHere();
  return (
    <div class="filters" role="search">
      <Search label="Search jobs" hint="Search id, name, tag, error…" value={filter.q} />
      {fixed.queue === undefined && <Pick label="Queue" word="queue" value={filter.queue} options={(overview.value?.queues ?? []).map(({ name }) => [name, name])} />}
      {fixed.state === undefined && <Pick label="State" word="state" value={filter.state} options={ALL_STATES.map((state) => [state, stateName(state)])} />}
      {me.value?.tenant === null && <Typed label="Tenant" word="tenant" value={filter.tenant} />}
      <Typed label="Name" word="name" value={filter.name} />
      <Typed label="Tag" word="tag" value={filter.tag} />
      {(fixed.state === "failed" || filter.state === "failed") && <Pick label="Kind" word="error_kind" value={filter.error_kind} options={KINDS.map((kind) => [kind, kind])} />}
      <Pick label="Added" word="within" value={filter.within} options={WITHIN} any="any time" />
      <Chip word="fingerprint" value={filter.fingerprint?.slice(0, 12)} />
      <Chip word="workspace" value={filter.workspace} />
      <Chip word="since_ms" name="since" value={timeIn(filter.since_ms)} />
      <Chip word="until_ms" name="until" value={timeIn(filter.until_ms)} />
    </div>
  );
}

function timeIn(ms: string | undefined): string | undefined {
  return ms && moment(Number(ms), nowMs.value);
}

/** A filter in words, for questions. */
export function described(filter: JobFilter): string {
  return Object.entries(filter)
    .map(([word, value]) => (word === "within" ? `added in the ${(WITHIN.find(([ms]) => ms === value)?.[1] ?? `last ${value} ms`).toLowerCase()}` : `${word} ${value}`))
    .join(", ");
}
