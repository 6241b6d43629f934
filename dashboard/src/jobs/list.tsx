// A page of jobs with selection. Only one page is ever in the document, however many jobs there are.
import { useEffect, useState } from "preact/hooks";
import { jobPage } from "../addresses";
import * as jobs from "../api/jobs";
import type { JobRow, State } from "../api/wire";
import { plural } from "../format";
import { useLiveReload } from "../live/live";
import { navigate } from "../router";
import { useLoad } from "../state/load";
import { useRowFocus } from "../state/rowfocus";
import { useShortcuts } from "../state/shortcuts";
import { Button } from "../ui/button";
import { Empty } from "../ui/notes";
import { cursorHere, Pager } from "../ui/pager";
import { Card } from "../ui/page";
import { Table } from "../ui/table";
import { View } from "../ui/view";
import { isAllowed, keyOf, leaving, perform, verbOf } from "./actions";
import { columnsOf } from "./columns";

const PAGE = 50;
const ACTIONS: jobs.JobAction[] = ["retry", "promote", "cancel", "remove"];

interface JobListProps {
  filter: jobs.JobFilter;
  hidesQueue?: boolean;
}

export function JobList({ filter, hidesQueue = false }: JobListProps) {
  const cursor = cursorHere();
  const load = useLoad(JSON.stringify([filter, cursor]), (abort) => jobs.list(filter, cursor, PAGE, abort));
  const items = load.data?.items ?? [];
  const rows = items.filter((job) => !leaving.value.has(keyOf(job)));
  const { selected, toggle, toggleAll, clear } = useSelection(rows);
  const chosen = rows.filter((job) => selected.has(keyOf(job)));
  // Older pages stay as they are while one reads them, and rows that are being chosen stay where they are.
  const isHeld = cursor !== null || chosen.length > 0;
  useLiveReload(() => !isHeld && load.reload(), { queue: filter.queue, everyMs: 1_500 });

  function act(action: jobs.JobAction, which: JobRow[]): void {
    void perform(action, which, load.reload).then(clear);
  }

  const byKey = (key: string | null): JobRow | undefined => rows.find((job) => keyOf(job) === key);
  const focused = useRowFocus(rows.map(keyOf), {
    Enter: (key) => withJob(byKey(key), (job) => navigate(jobPage(job))),
    x: (key) => withJob(byKey(key), toggle),
    r: (key) => {
      const one = byKey(key);
      const which = chosen.length ? chosen : one ? [one] : [];
      if (which.length) act("retry", which);
    },
  });
  useShortcuts({ Escape: clear });

  return (
    <Card isFlush>
      {chosen.length > 0 && (
        <div class="selection" role="group" aria-label="Selected jobs">
          <b>{plural(chosen.length, "job")} selected</b>
          {ACTIONS.filter((action) => chosen.some((job) => isAllowed(action, job.state))).map((action) => (
            <Button key={action} isSmall kind={action === "remove" ? "danger" : "plain"} onClick={() => act(action, chosen)}>
              {verbOf(action)}
            </Button>
          ))}
          <Button isSmall kind="quiet" onClick={clear}>
            Clear
          </Button>
          <span class="muted">the list stands still meanwhile</span>
          <Button isSmall kind="quiet" icon="retry" onClick={load.reload}>
            Refresh
          </Button>
        </div>
      )}
      <View of={load} lines={10}>
        {(page) => (
          <>
            {rows.length > 0 ? (
              <Table
                label="Jobs"
                columns={columnsOf({ selected, toggle, toggleAll, areAll: chosen.length === rows.length, hidesQueue, state: filter.state as State | undefined })}
                rows={rows}
                keyOf={keyOf}
                focused={focused}
              />
            ) : items.length > 0 ? (
              <Empty title="These are being removed">The list goes on once they are gone; Undo in the message brings them back.</Empty>
            ) : (
              <NoJobs filter={filter} isFilling={page.behind_ms === null} />
            )}
            {(rows.length > 0 || cursor || page.next_cursor) && (
              <Pager next={page.next_cursor} shown={page.next_cursor || cursor ? `${rows.length} on this page` : plural(rows.length, "job")} />
            )}
          </>
        )}
      </View>
    </Card>
  );
}

function withJob(job: JobRow | undefined, then: (job: JobRow) => void): void {
  if (job) then(job);
}

function useSelection(rows: JobRow[]) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const keys = rows.map(keyOf).join("\n");
  // What left the list is no longer chosen: an action must not reach what one cannot see.
  useEffect(() => {
    const shown = new Set(keys.split("\n"));
    setSelected((before) => new Set([...before].filter((key) => shown.has(key))));
  }, [keys]);
  return {
    selected,
    clear: () => setSelected(new Set()),
    toggle: (job: JobRow) =>
      setSelected((before) => {
        const after = new Set(before);
        if (!after.delete(keyOf(job))) after.add(keyOf(job));
        return after;
      }),
    toggleAll: (isOn: boolean) => setSelected(new Set(isOn ? rows.map(keyOf) : [])),
  };
}

function NoJobs({ filter, isFilling }: { filter: jobs.JobFilter; isFilling: boolean }) {
  if (isFilling) return <Empty title="The list is being made">What the store has is read for the first time. Jobs appear here as they are found.</Empty>;
  const asked = Object.keys(filter).filter((word) => word !== "queue" && word !== "state");
  if (asked.length > 0) return <Empty title="No job fits">Take a filter away, or search for the beginning of a word: id, name, tag, error.</Empty>;
  return <Empty title={filter.state ? "No job is in this state" : "No jobs"}>They appear here as soon as there are some; nothing needs to be reloaded.</Empty>;
}
