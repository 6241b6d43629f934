import { useState } from "preact/hooks";
import { runPage } from "../addresses";
import { list, RUN_STATES, type RunFilter } from "../api/runs";
import { plural } from "../format";
import { useLiveReload } from "../live/live";
import { navigate, place, setQuery } from "../router";
import { columnsOf } from "../runs/columns";
import { NewRunDialog } from "../runs/newrun";
import { runStateName, toneOfRun } from "../runs/state";
import { useLoad } from "../state/load";
import { useRowFocus } from "../state/rowfocus";
import { may, me } from "../state/session";
import { useShortcuts } from "../state/shortcuts";
import { Button } from "../ui/button";
import { Search, Typed } from "../ui/filters";
import { Empty } from "../ui/notes";
import { cursorHere, Pager } from "../ui/pager";
import { Card, Page } from "../ui/page";
import { Table } from "../ui/table";
import { Tabs } from "../ui/tabs";
import { View } from "../ui/view";

const PAGE = 50;
/** Moments that pass by themselves are not worth a tab. */
const SHOWN = RUN_STATES.filter((state) => state !== "pending");

export function RunsPage() {
  const [isAsking, setAsking] = useState(false);
  const mayAsk = may("tasks:add");
  useShortcuts(mayAsk ? { n: () => setAsking(true) } : {});
  return (
    <Page
      title="Runs"
      lead="What agents were asked to do, the newest first."
      actions={mayAsk && <Button kind="main" icon="plus" onClick={() => setAsking(true)}>New run</Button>}
    >
      <StateTabs />
      <RunFilters />
      <RunList onAsk={mayAsk ? () => setAsking(true) : undefined} />
      {isAsking && <NewRunDialog onClose={() => setAsking(false)} />}
    </Page>
  );
}

function StateTabs() {
  const state = place.value.query.get("state") ?? "";
  const tabs = [{ id: "", name: "All" }, ...SHOWN.map((one) => ({ id: one as string, name: runStateName(one), state: toneOfRun(one) }))];
  return <Tabs label="State" tabs={tabs} current={state} onPick={(id) => setQuery({ state: id || null, cursor: null })} />;
}

function RunFilters() {
  const { q, tenant, workspace } = filterHere();
  return (
    <div class="filters" role="search">
      <Search label="Search runs" hint="Search id, prompt, kind, who, error…" value={q} />
      {me.value?.tenant === null && <Typed label="Tenant" word="tenant" value={tenant} />}
      <Typed label="Workspace" word="workspace" value={workspace} />
    </div>
  );
}

function RunList({ onAsk }: { onAsk: (() => void) | undefined }) {
  const filter = filterHere();
  const cursor = cursorHere();
  const load = useLoad(JSON.stringify([filter, cursor]), (abort) => list(filter, cursor, PAGE, abort));
  // Older pages stay as they are while one reads them.
  useLiveReload(() => cursor === null && load.reload(), { everyMs: 1_500 });
  const rows = load.data?.items ?? [];
  const focused = useRowFocus(rows.map((run) => run.run_id), { Enter: (id) => id !== null && navigate(runPage(id)) });
  return (
    <Card isFlush>
      <View of={load} lines={10}>
        {(page) =>
          rows.length === 0 ? (
            <NoRuns filter={filter} onAsk={onAsk} />
          ) : (
            <>
              <Table label="Runs" columns={columnsOf(rows)} rows={rows} keyOf={(run) => run.run_id} focused={focused} />
              <Pager next={page.next_cursor} shown={page.next_cursor || cursor ? `${rows.length} on this page` : plural(rows.length, "run")} />
            </>
          )
        }
      </View>
    </Card>
  );
}

const FILTER_WORDS = ["state", "tenant", "workspace", "q"] as const;

function filterHere(): RunFilter {
  const found: RunFilter = {};
  for (const word of FILTER_WORDS) {
    const value = place.value.query.get(word);
    if (value) found[word] = value;
  }
  return found;
}

function NoRuns({ filter, onAsk }: { filter: RunFilter; onAsk: (() => void) | undefined }) {
  if (filter.q) return <Empty title="No run fits">Take a filter away, or search for the beginning of a word: id, prompt, kind, who asked, error.</Empty>;
  if (filter.tenant || filter.workspace) return <Empty title="No run fits">Names are to be given in full. Runs that fit appear here by themselves.</Empty>;
  if (filter.state) return <Empty title="No run is in this state">Those that come to it appear here by themselves.</Empty>;
  return (
    <Empty title="No runs yet" action={onAsk && <Button icon="plus" onClick={onAsk}>Ask for the first</Button>}>
      A run is something that agents were asked to do: here, by <code>agents.submit(…)</code>, or over HTTP.
    </Empty>
  );
}
