// Why jobs fail: those with the same type and the same cause stand together.
import { deadLettersPage, queuePage } from "../addresses";
import { failures } from "../api/jobs";
import type { FailureGroup } from "../api/wire";
import { count, plural } from "../format";
import { useLiveReload } from "../live/live";
import { overview } from "../live/overview";
import { navigate, place, setQuery } from "../router";
import { useLoad } from "../state/load";
import { useRowFocus } from "../state/rowfocus";
import { may } from "../state/session";
import { Button } from "../ui/button";
import { Empty } from "../ui/notes";
import { Card, Page } from "../ui/page";
import { countOf } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { Tabs } from "../ui/tabs";
import { Ago } from "../ui/time";
import { View } from "../ui/view";
import { act } from "./deadletters";

export function FailuresPage() {
  const queue = place.value.query.get("queue") ?? undefined;
  const load = useLoad(`failures ${queue}`, (abort) => failures(queue ? { queue } : {}, abort));
  useLiveReload(load.reload, { queue, everyMs: 2_000 });
  const groups = load.data?.items ?? [];
  const focused = useRowFocus(groups.map(keyOf), {
    Enter: (key) => {
      const group = groups.find((one) => keyOf(one) === key);
      if (group) navigate(deadLettersPage(filterOf(group)));
    },
  });
  return (
    <Page title="Failures" lead={load.data && summary(groups)}>
      <QueueTabs current={queue} />
      <Card isFlush>
        <View of={load}>
          {() =>
            groups.length === 0 ? (
              <Empty title={queue ? `Nothing has failed in ${queue}` : "Nothing has failed"}>When jobs fail for good, they are grouped here by type and cause.</Empty>
            ) : (
              <Table label="Failures by type and cause" columns={columns(load.reload)} rows={groups} keyOf={keyOf} focused={focused} />
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

function summary(groups: FailureGroup[]): string {
  const jobs = groups.reduce((sum, group) => sum + group.count, 0);
  return jobs ? `${plural(jobs, "job")} failed for ${plural(groups.length, "reason")}; the most frequent first.` : "By type and cause.";
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
