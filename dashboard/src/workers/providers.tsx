// Providers of models as all workers found them last: those that were ever in trouble, else one line.
import { providers, type Provider } from "../api/standing";
import { NONE, plural } from "../format";
import { useLiveReload } from "../live/live";
import { nowMs } from "../state/clock";
import { useLoad } from "../state/load";
import { Card } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

export function Providers() {
  const load = useLoad("providers", providers);
  useLiveReload(load.reload, { everyMs: 5_000 });
  const told = (load.data?.items ?? []).filter((one) => one.since_ms !== null || isLimited(one));
  return (
    <Card title="Providers of models" isFlush={told.length > 0}>
      <View of={load} lines={2}>
        {({ items }) =>
          told.length === 0 ? (
            <p class="muted">{plural(items.length, "provider")}, and nothing bad is known of any.</p>
          ) : (
            <Table label="Providers of models" columns={COLUMNS} rows={told} keyOf={(one) => one.name} />
          )
        }
      </View>
    </Card>
  );
}

function isLimited({ limited_until_ms }: Provider): boolean {
  return limited_until_ms !== null && limited_until_ms > nowMs.value;
}

const STATES: Record<Provider["state"], [name: string, tone: string]> = {
  healthy: ["Healthy", "good"],
  degraded: ["Degraded", "odd"],
  down: ["Down", "bad"],
};

function status(one: Provider) {
  const [name, tone] = isLimited(one) && one.state === "healthy" ? ["At its limit", "odd"] : STATES[one.state];
  return <span class={`badge tone-${tone}`}>{name}</span>;
}

const COLUMNS: Column<Provider>[] = [
  { name: "Provider", isTitle: true, cell: (one) => one.name },
  { name: "Status", cell: status },
  { name: "Since", cell: (one) => <Ago ms={one.since_ms} /> },
  { name: "Last error", isWide: true, cell: (one) => (one.last_error ? <code>{one.last_error}</code> : <span class="muted">{NONE}</span>) },
  { name: "Failures in a row", isNumber: true, cell: (one) => one.failures },
  { name: "Asked again", isNumber: true, cell: (one) => <Ago ms={isLimited(one) ? one.limited_until_ms : one.next_probe_ms} /> },
];
