// In what the code of runs is run, on all workers; most workers have none, and nothing is shown then.
import { sandboxes, type Sandbox } from "../api/standing";
import { NONE, plural } from "../format";
import { shortId } from "../jobs/columns";
import { useLiveReload } from "../live/live";
import { useLoad } from "../state/load";
import { Card } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";

export function Sandboxes() {
  const load = useLoad("sandboxes", sandboxes);
  useLiveReload(load.reload, { everyMs: 5_000 });
  const items = load.data?.items ?? [];
  if (items.length === 0) return null;
  const inUse = items.filter(({ state }) => state !== "warm").length;
  return (
    <Card title="Sandboxes" aside={`${inUse} of ${plural(items.length, "sandbox", "sandboxes")} in use`} isFlush>
      <Table label="Sandboxes" columns={COLUMNS} rows={items} keyOf={(one) => `${one.worker}/${one.id}`} />
    </Card>
  );
}

const COLUMNS: Column<Sandbox>[] = [
  { name: "Sandbox", isTitle: true, cell: (one) => <code>{shortId(one.id)}</code> },
  { name: "Status", cell: (one) => (one.state === "warm" ? <span class="badge">Ready</span> : <span class="badge tone-good">In use</span>) },
  { name: "Tenant", cell: (one) => one.tenant ?? <span class="muted">{NONE}</span> },
  { name: "Since", cell: (one) => <Ago ms={one.since_ms} /> },
  { name: "Worker", cell: (one) => one.worker },
  { name: "Driver", isWide: true, cell: (one) => <>{one.driver} <span class="muted">{one.isolation}</span></> },
];
