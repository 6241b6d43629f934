// Why jobs fail: those with the same type and the same cause stand together.
import { deadLettersPage, queuePage } from "../addresses";
import { failures, type FailureFilter } from "../api/jobs";
import type { FailureGroup } from "../api/wire";
import { count, plural } from "../format";
import { WITHIN } from "../jobs/filters";
import { useLiveReload } from "../live/live";
import { overview } from "../live/overview";
import { navigate, place, setQuery } from "../router";
import { useLoad } from "../state/load";
import { useRowFocus } from "../state/rowfocus";
import { may } from "../state/session";
import { Button } from "../ui/button";
import { Pick } from "../ui/filters";
import { Empty } from "../ui/notes";
import { Card, Page } from "../ui/page";
import { countOf } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { Tabs } from "../ui/tabs";
import { Ago } from "../ui/time";
import { View } from "../ui/view";
import { act } from "./deadletters";

export function FailuresPage() {
  const filter = filterHere();
  const { queue } = filter;
  const load = useLoad(`failures ${JSON.stringify(filter)}`, (abort) => failures(filter, abort));
  useLiveReload(load.reload, { queue, everyMs: 2_000 });
  const groups = load.data?.items ?? [];
  const focused = useRowFocus(groups.map(keyOf), {
    Enter: (key) => {
      const group = groups.find((one) => keyOf(one) === key);
      if (group) navigate(deadLettersPage(filterOf(group)));
    },
  });
  return (
    <Page title="Failures" lead={load.data && summary(groups, filter)}>
      <QueueTabs current={queue} />
      <div class="filters" role="search">
        <Pick label="Failed" word="within" value={filter.within} options={WITHIN} any="any time" />
        <Pick label="Order" word="order" value={filter.order} options={[["newest", "The last first"]]} any="the most frequent first" />
      </div>
      <Card isFlush>
        <View of={load}>
          {({ has_more }) =>
            groups.length === 0 ? (
              <Empty title={["Nothing has failed", queue && `in ${queue}`, periodOf(filter)].filter(Boolean).join(" ")}>
                When jobs fail for good, they are grouped here by type and cause.
              </Empty>
            ) : (
              <>
                <Table label="Failures by type and cause" columns={columns(load.reload)} rows={groups} keyOf={keyOf} focused={focused} />
                {has_more && <p class="pager-end">The first {count(groups.length)} reasons; choose a queue or a time to see others.</p>}
              </>
            )
          }
        </View>
      </Card>
    </Page>
  );
}

/** A queue is a role of the workforce: whose jobs fail, the most first. */
function QueueTabs({ current }: { current: string | undefined }) {
  const failed = (overview.value?.queues ?? []).map(({ name, counts }) => ({ name, jobs: countOf(counts, "failed") }));
  const shown = failed.filter(({ name, jobs }) => jobs > 0 || name === current).toSorted((one, other) => other.jobs - one.jobs);
  if (shown.length === 0) return null;
  const all = failed.reduce((sum, { jobs }) => sum + jobs, 0);
  const tabs = [{ id: "", name: "All queues", count: count(all) }, ...shown.map(({ name, jobs }) => ({ id: name, name, count: count(jobs) }))];
  return <Tabs label="Failed jobs by queue" tabs={tabs} current={current ?? ""} onPick={(name) => setQuery({ queue: name })} />;
}

const FILTER_WORDS = ["queue", "within", "order"] as const;

function filterHere(): FailureFilter {
  const found: FailureFilter = {};
  for (const word of FILTER_WORDS) {
    const value = place.value.query.get(word);
    if (value) found[word] = value;
  }
  return found;
}

function periodOf({ within }: FailureFilter): string {
  const name = WITHIN.find(([ms]) => ms === within)?.[1];
  return name ? `in the ${name.toLowerCase()}` : "";
}

function summary(groups: FailureGroup[], filter: FailureFilter): string {
  const jobs = groups.reduce((sum, group) => sum + group.count, 0);
  if (!jobs) return "By type and cause.";
  const order = filter.order === "newest" ? "the last first" : "the most frequent first";
  return `${[plural(jobs, "job"), "failed", periodOf(filter), "for", plural(groups.length, "reason")].filter(Boolean).join(" ")}; ${order}.`;
}

function keyOf(group: FailureGroup): string {
  return `${group.queue}/${group.name}/${group.fingerprint}`;
}

function filterOf({ queue, name, fingerprint }: FailureGroup): Record<string, string> {
  return { queue, name, ...(fingerprint ? { fingerprint } : {}) };
}

function columns(reload: () => void): Column<FailureGroup>[] {
  return [
    { name: "Jobs", isNumber: true, isLong: true, cell: (group) => <b class="is-bad">{count(group.count)}</b> },
    {
      name: "Type",
      isTitle: true,
      cell: (group) => <a href={deadLettersPage(filterOf(group))}>{group.name}</a>,
    },
    { name: "Queue", cell: (group) => <a href={queuePage(group.queue)}>{group.queue}</a> },
    { name: "Newest error", isWide: true, cell: (group) => <span title={group.error}>{group.error || "no message"}</span> },
    { name: "Cause", cell: (group) => <code class="muted">{group.fingerprint.slice(0, 10)}</code> },
    { name: "First", isNumber: true, cell: (group) => <Ago ms={group.oldest_ms} /> },
    { name: "Last", isNumber: true, cell: (group) => <Ago ms={group.newest_ms} /> },
    {
      name: "Actions",
      isNameHidden: true,
      isCorner: true,
      cell: (group) =>
        may("jobs:retry") && (
          <Button isSmall icon="retry" label={`Retry all of ${group.name}`} onClick={() => void act("retry", filterOf(group)).then(reload)} />
        ),
    },
  ];
}
