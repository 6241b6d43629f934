// One queue: how it stands, its last hour, its jobs by state, its groups, limits and tenants.
import { failuresPage } from "../addresses";
import { minutes, queue as loadQueue } from "../api/queues";
import type { QueueDetail, State } from "../api/wire";
import { CHART_MINUTES, LatencyChart, RateChart } from "../charts/queuecharts";
import { count, duration, rate } from "../format";
import { filterHere, Filters } from "../jobs/filters";
import { JobList } from "../jobs/list";
import { useLiveReload } from "../live/live";
import { Groups } from "../queue/groups";
import { LimitsCard } from "../queue/limits";
import { TenantSplit } from "../queue/tenants";
import { carryOut, PLANS, setPaused } from "../queueactions";
import { navigate, place, setQuery } from "../router";
import { serverNow } from "../state/clock";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { Button } from "../ui/button";
import { Menu } from "../ui/menu";
import { Card, Figure, Page } from "../ui/page";
import { ALL_STATES, countOf, ready, stateName } from "../ui/state";
import { Tabs, type Tab } from "../ui/tabs";
import { View } from "../ui/view";

const HOUR_MS = CHART_MINUTES * 60_000;

export function QueuePage({ name }: { name: string }) {
  const load = useLoad(`queue ${name}`, (abort) => loadQueue(name, abort));
  useLiveReload(load.reload, { queue: name, everyMs: 750 });
  const queue = load.data;
  return (
    <Page
      title={name}
      trail={<a href="/">Queues</a>}
      badge={queue?.paused && <span class="badge tone-odd">Paused</span>}
      actions={queue && may("queues:write") && <Actions queue={queue} reload={load.reload} />}
    >
      <View of={load} lines={10}>
        {(detail) => (
          <>
            <Figures queue={detail} />
            <Charts name={name} />
            <Parts queue={detail} reload={load.reload} />
          </>
        )}
      </View>
    </Page>
  );
}

function Actions({ queue, reload }: { queue: QueueDetail; reload: () => void }) {
  return (
    <>
      <Button icon={queue.paused ? "play" : "pause"} kind={queue.paused ? "main" : "plain"} onClick={() => void setPaused(queue.name, !queue.paused).then(reload)}>
        {queue.paused ? "Resume" : "Pause"}
      </Button>
      <Menu
        label="More actions"
        items={PLANS.map((plan) => ({
          name: plan.name,
          isDangerous: plan.isDangerous ?? false,
          onPick: () =>
            void carryOut(queue, plan).then((isDone) => {
              if (isDone && plan.action === "obliterate") navigate("/");
              else reload();
            }),
        }))}
      />
    </>
  );
}

function Figures({ queue }: { queue: QueueDetail }) {
  const failed = countOf(queue.counts, "failed");
  return (
    <div class="figures">
      <Figure label="Waiting" value={count(ready(queue.counts))} note={queue.oldest_waiting_ms === null || ready(queue.counts) === 0 ? "nothing is late" : `oldest ${duration(queue.oldest_waiting_ms)}`} />
      <Figure label="Active" value={count(countOf(queue.counts, "active"))} tone="active" />
      <Figure label="Failed" value={count(failed)} tone={failed ? "failed" : undefined} {...(failed ? { href: failuresPage(queue.name), note: "by cause" } : {})} />
      <Figure label="Added" value={rate(queue.rates.added_per_s)} note="a second" />
      <Figure label="Completed" value={rate(queue.rates.completed_per_s)} note="a second" tone="completed" />
      <Figure label="Wait" value={duration(queue.wait_ms.p50)} note={`p95 ${duration(queue.wait_ms.p95)}`} />
      <Figure label="Run" value={duration(queue.run_ms.p50)} note={`p95 ${duration(queue.run_ms.p95)}`} />
    </div>
  );
}

function Charts({ name }: { name: string }) {
  const load = useLoad(`minutes ${name}`, (abort) => minutes(name, serverNow() - HOUR_MS, serverNow() + 60_000, abort));
  useLiveReload(load.reload, { queue: name, everyMs: 5_000 });
  const known = load.data?.items ?? [];
  return (
    <div class="grid-3">
      <Card title="Jobs a minute">
        <RateChart minutes={known} />
      </Card>
      <Card title="Waited for a slot">
        <LatencyChart minutes={known} of="wait_ms" />
      </Card>
      <Card title="Ran for">
        <LatencyChart minutes={known} of="run_ms" />
      </Card>
    </div>
  );
}

const PARTS = ["groups", "tenants", "limits"] as const;

function Parts({ queue, reload }: { queue: QueueDetail; reload: () => void }) {
  const part = place.value.query.get("part");
  const state = place.value.query.get("state");
  const tabs: Tab[] = [
    { id: "all", name: "All jobs" },
    ...ALL_STATES.map((one) => ({ id: one, name: stateName(one), state: one, count: count(countOf(queue.counts, one)) })),
    { id: "groups", name: "Groups" },
    ...(queue.tenants ? [{ id: "tenants", name: "Tenants" }] : []),
    ...(queue.limits ? [{ id: "limits", name: "Limits" }] : []),
  ];
  function pick(id: string): void {
    const isPart = PARTS.includes(id as (typeof PARTS)[number]);
    const isAll = id === "all";
    setQuery({ part: isPart ? id : null, state: isPart || isAll ? null : id, cursor: null });
  }
  return (
    <>
      <Tabs label="What to look at" tabs={tabs} current={part ?? state ?? "all"} onPick={pick} />
      {part === "groups" ? (
        <Groups queue={queue.name} />
      ) : part === "tenants" ? (
        <TenantSplit queue={queue} />
      ) : part === "limits" && queue.limits ? (
        <LimitsCard queue={queue.name} limits={queue.limits} onChange={reload} />
      ) : (
        <Jobs name={queue.name} state={state as State | null} />
      )}
    </>
  );
}

function Jobs({ name, state }: { name: string; state: State | null }) {
  return (
    <>
      <Filters fixed={{ queue: name, state: state ?? "" }} />
      <JobList filter={filterHere({ queue: name, ...(state ? { state } : {}) })} hidesQueue />
    </>
  );
}
