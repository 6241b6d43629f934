// All queues at a glance.
import { deadLettersPage, jobsPage, queuePage } from "../addresses";
import { failures } from "../api/jobs";
import type { Overview, Queue } from "../api/wire";
import { summed } from "../charts/minutes";
import { RateChart } from "../charts/queuecharts";
import { Sparkline, SPARK_MINUTES } from "../charts/sparkline";
import { count, duration, NONE, plural, rate } from "../format";
import { useLiveReload } from "../live/live";
import { overview, overviewProblem, reloadOverview } from "../live/overview";
import { setPaused } from "../queueactions";
import { navigate } from "../router";
import { isIdleShown, sorted } from "../state/idle";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { useRowFocus } from "../state/rowfocus";
import { Button } from "../ui/button";
import { IdleButton } from "../ui/idle";
import { Empty, ProblemNote, Skeleton, StaleLine } from "../ui/notes";
import { Card, Figure, Page } from "../ui/page";
import { countOf, ready, StateBar } from "../ui/state";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

export function OverviewPage() {
  const data = overview.value;
  const problem = overviewProblem.value;
  return (
    <Page title="Overview" lead={data && `${plural(data.queues.length, "queue")}, ${plural(data.workers, "worker")}`}>
      {data ? (
        <>
          <StaleLine problem={problem} />
          {data.queues.length === 0 ? <NoQueues /> : <Queues data={data} />}
        </>
      ) : problem ? (
        <ProblemNote problem={problem} onRetry={() => void reloadOverview()} />
      ) : (
        <Card>
          <Skeleton lines={9} />
        </Card>
      )}
    </Page>
  );
}

function NoQueues() {
  return (
    <Card>
      <Empty title="No queues yet">
        A queue is made by its first job. In a terminal:
        <pre>bullpen enqueue mail welcome '{"{"}"user_id": 42{"}"}'</pre>
      </Empty>
    </Card>
  );
}

function Queues({ data }: { data: Overview }) {
  const { busy, idle } = sorted(data.queues);
  const rows = isIdleShown.value ? [...busy, ...idle] : busy;
  const focused = useRowFocus(rows.map((queue) => queue.name), { Enter: (name) => name !== null && navigate(queuePage(name)) });
  return (
    <>
      <Totals data={data} />
      <Card isFlush>
        <Table label="Queues" columns={COLUMNS} rows={rows} keyOf={(queue) => queue.name} focused={focused} />
        {idle.length > 0 && <IdleButton number={idle.length} />}
      </Card>
      <div class="grid-2">
        <Card title="All queues, jobs a minute">
          <RateChart minutes={summed(data.queues.map((queue) => queue.spark))} howMany={SPARK_MINUTES} />
        </Card>
        {may("jobs:read") && <LateFailures />}
      </div>
    </>
  );
}

const MOST_FAILURES = 5;
/** What fails now stands first: what failed in its thousands last week is on the page of failures. */
const LATE = { within: "86400000", order: "newest" };

function LateFailures() {
  const load = useLoad("late failures", (abort) => failures(LATE, abort));
  useLiveReload(load.reload, { everyMs: 5_000 });
  return (
    <Card title="What failed in the last day" aside={<a href="/failures">All failures</a>}>
      <View of={load} lines={4}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted">Nothing has failed.</p>
          ) : (
            <ul class="top-failures">
              {items.slice(0, MOST_FAILURES).map((group) => (
                <li key={`${group.queue} ${group.name} ${group.fingerprint}`}>
                  <b class="is-bad">{count(group.count)}</b>
                  <a class="cut" href={deadLettersPage({ queue: group.queue, name: group.name, fingerprint: group.fingerprint })}>
                    {group.name} <span class="muted">{group.error}</span>
                  </a>
                  <Ago ms={group.newest_ms} />
                </li>
              ))}
            </ul>
          )
        }
      </View>
    </Card>
  );
}

function sum(queues: Queue[], value: (queue: Queue) => number): number {
  return queues.reduce((total, queue) => total + value(queue), 0);
}

function Totals({ data: { queues, workers } }: { data: Overview }) {
  const failed = sum(queues, (queue) => countOf(queue.counts, "failed"));
  const waiting = sum(queues, (queue) => ready(queue.counts));
  const oldest = Math.max(...queues.map((queue) => queue.oldest_waiting_ms ?? -1));
  return (
    <div class="figures">
      <Figure label="Waiting" value={count(waiting)} note={waiting === 0 || oldest < 0 ? "nothing is late" : `oldest ${duration(oldest)}`} />
      <Figure label="Active" value={count(sum(queues, (queue) => countOf(queue.counts, "active")))} note={`on ${plural(workers, "worker")}`} tone="active" href={jobsPage({ state: "active" })} />
      <Figure label="Delayed" value={count(sum(queues, (queue) => countOf(queue.counts, "delayed")))} note="and to be retried" href={jobsPage({ state: "delayed" })} />
      <Figure label="Failed" value={count(failed)} note={failed ? "look into them" : "all is well"} tone={failed ? "failed" : undefined} href="/failures" />
      <Figure label="Added" value={rate(sum(queues, (queue) => queue.rates.added_per_s))} note="a second" />
      <Figure label="Completed" value={rate(sum(queues, (queue) => queue.rates.completed_per_s))} note="a second" tone="completed" />
    </div>
  );
}

function pairOf(low: number | null, high: number | null) {
  if (low === null && high === null) return <span class="muted">{NONE}</span>;
  return (
    <>
      {duration(low)} <span class="muted">· {duration(high)}</span>
    </>
  );
}

const COLUMNS: Column<Queue>[] = [
  {
    name: "Queue",
    isTitle: true,
    cell: (queue) => (
      <span class="queue-name">
        <a href={queuePage(queue.name)}>{queue.name}</a>
        {queue.paused && <span class="badge tone-odd">Paused</span>}
        {queue.is_scanning && <span class="badge">Scanning</span>}
      </span>
    ),
  },
  { name: "States", cell: (queue) => <StateBar counts={queue.counts} /> },
  { name: "Waiting", isNumber: true, cell: (queue) => count(ready(queue.counts)) },
  { name: "Active", isNumber: true, cell: (queue) => count(countOf(queue.counts, "active")) },
  { name: "Delayed", isNumber: true, cell: (queue) => count(countOf(queue.counts, "delayed")) },
  {
    name: "Failed",
    isNumber: true,
    cell: (queue) => {
      const failed = countOf(queue.counts, "failed");
      return <span class={failed ? "is-bad" : "muted"}>{count(failed)}</span>;
    },
  },
  { name: "In · out /s", isNumber: true, isLong: true, cell: ({ rates }) => <>{rate(rates.added_per_s)} <span class="muted">· {rate(rates.completed_per_s)}</span></> },
  { name: "Wait p50 · p95", isNumber: true, isLong: true, cell: ({ wait_ms }) => pairOf(wait_ms.p50, wait_ms.p95) },
  { name: "Run p50 · p95", isNumber: true, isLong: true, cell: ({ run_ms }) => pairOf(run_ms.p50, run_ms.p95) },
  { name: "Oldest", isNumber: true, cell: (queue) => duration(queue.oldest_waiting_ms) },
  { name: "Last 30 min", cell: (queue) => <Sparkline spark={queue.spark} name={queue.name} /> },
  {
    name: "Actions",
    isNameHidden: true,
    isCorner: true,
    cell: (queue) =>
      may("queues:write") && (
        <Button
          isSmall
          kind="quiet"
          icon={queue.paused ? "play" : "pause"}
          label={queue.paused ? `Resume ${queue.name}` : `Pause ${queue.name}`}
          onClick={() => void setPaused(queue.name, !queue.paused)}
        />
      ),
  },
];
