import { queuePage } from "../addresses";
import { actOnSchedule, removeSchedule, schedules, type Schedule } from "../api/queues";
import { count, duration, moment, NONE, plural, ZONE } from "../format";
import { useLiveReload } from "../live/live";
import { nowMs } from "../state/clock";
import { useLoad } from "../state/load";
import { may } from "../state/session";
import { attempt } from "../state/toasts";
import { Button } from "../ui/button";
import { confirm } from "../ui/dialog";
import { Empty } from "../ui/notes";
import { Card, Page } from "../ui/page";
import { MoreThanShown } from "../ui/pager";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

const SHOWN_RUNS = 3;

export function SchedulesPage() {
  const load = useLoad("schedules", schedules);
  useLiveReload(load.reload, { everyMs: 2_000 });
  return (
    <Page title="Schedules" lead={load.data && plural(load.data.items.length, "schedule")}>
      <Card isFlush>
        <View of={load}>
          {({ items, next_cursor }) =>
            items.length === 0 ? (
              <Empty title="No schedules">
                A program makes one with <code>pen.schedule("nightly", job, cron="0 3 * * *")</code>, or by the API.
              </Empty>
            ) : (
              <>
                <Table label="Schedules" columns={columns(items, load.reload)} rows={items} keyOf={(one) => `${one.queue}/${one.id}`} />
                <MoreThanShown of={{ items, next_cursor }} />
              </>
            )
          }
        </View>
      </Card>
    </Page>
  );
}

function rhythm({ cron, tz, every_ms }: Schedule) {
  if (cron) {
    return (
      <>
        <code>{cron}</code> <span class="muted">{tz ?? "UTC"}</span>
      </>
    );
  }
  return `every ${duration(every_ms)}`;
}

function status(schedule: Schedule) {
  if (schedule.ended) return <span class="badge">Ended</span>;
  return schedule.paused ? <span class="badge tone-odd">Paused</span> : <span class="badge tone-good">On</span>;
}

function NextRuns({ schedule }: { schedule: Schedule }) {
  const runs = schedule.next_runs;
  if (schedule.paused || runs.length === 0) return <span class="muted">none</span>;
  return (
    <>
      <Ago ms={runs[0]} /> <span class="muted">{runs.slice(0, SHOWN_RUNS).map((run) => moment(run, nowMs.value)).join(", ")}</span>
    </>
  );
}

function columns(all: Schedule[], reload: () => void): Column<Schedule>[] {
  const isAnybodys = all.some(({ tenant }) => tenant !== null);
  const columns: (Column<Schedule> | false)[] = [
    {
      name: "Schedule",
      isTitle: true,
      cell: (schedule) => (
        <>
          {schedule.id} <span class="muted">{schedule.name}</span>
        </>
      ),
    },
    { name: "Queue", cell: (schedule) => <a href={queuePage(schedule.queue)}>{schedule.queue}</a> },
    isAnybodys && { name: "Tenant", cell: (schedule) => schedule.tenant ?? <span class="muted">{NONE}</span> },
    { name: "Status", cell: status },
    { name: "When", cell: rhythm },
    { name: `Next runs (${ZONE})`, isWide: true, cell: (schedule) => <NextRuns schedule={schedule} /> },
    { name: "Runs", isNumber: true, cell: (schedule) => count(schedule.ticks) },
    { name: "Skipped", isNumber: true, cell: (schedule) => <span class={schedule.skipped ? "" : "muted"}>{count(schedule.skipped)}</span> },
    { name: "Actions", isNameHidden: true, cell: (schedule) => may("schedules:write") && <Actions schedule={schedule} reload={reload} /> },
  ];
  return columns.filter((column) => column !== false);
}

function Actions({ schedule, reload }: { schedule: Schedule; reload: () => void }) {
  const { id, paused } = schedule;
  async function setPaused(next: boolean, isUndo = false): Promise<void> {
    const undo = isUndo ? undefined : () => void setPaused(!next, true);
    await attempt(next ? `Pausing ${id}` : `Resuming ${id}`, next ? `${id} is paused` : `${id} is on again`, () => actOnSchedule(schedule, next ? "pause" : "resume"), undo);
    reload();
  }
  async function run(): Promise<void> {
    await attempt(`Running ${id}`, `${id} runs now, beside its usual times`, () => actOnSchedule(schedule, "run"));
    reload();
  }
  async function remove(): Promise<void> {
    const text = "It makes no more jobs. Those it has made stay. This cannot be undone.";
    if (!(await confirm({ title: `Remove ${id}?`, text, verb: "Remove", isDangerous: true }))) return;
    await attempt(`Removing ${id}`, `${id} is removed`, () => removeSchedule(schedule));
    reload();
  }
  return (
    <div class="row-actions">
      <Button isSmall onClick={() => void run()}>
        Run now
      </Button>
      <Button isSmall kind="quiet" icon={paused ? "play" : "pause"} label={paused ? `Resume ${id}` : `Pause ${id}`} onClick={() => void setPaused(!paused)} />
      <Button isSmall kind="quiet" icon="close" label={`Remove ${id}`} onClick={() => void remove()} />
    </div>
  );
}
