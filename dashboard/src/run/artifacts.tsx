// Files that the run made, and those that it was given.
import { artifacts, contentOf, inputs, type Artifact } from "../api/runs";
import { bytes } from "../format";
import { useLoad } from "../state/load";
import { Card } from "../ui/page";
import { Ago } from "../ui/time";
import { View } from "../ui/view";

/** Asked for once the log has told of some: most runs make none. */
export function Artifacts({ runId, told }: { runId: string; told: number }) {
  return told > 0 ? <List key={told} runId={runId} /> : null;
}

/** Most runs are given none: nothing is shown then. */
export function Inputs({ runId }: { runId: string }) {
  const load = useLoad(`inputs ${runId}`, (abort) => inputs(runId, abort));
  return load.data?.items.length ? (
    <Card title="Inputs">
      <Items items={load.data.items} />
    </Card>
  ) : null;
}

function List({ runId }: { runId: string }) {
  const load = useLoad(`artifacts ${runId}`, (abort) => artifacts(runId, abort));
  return (
    <Card title="Artifacts">
      <View of={load} lines={2}>
        {({ items }) => <Items items={items} />}
      </View>
    </Card>
  );
}

function Items({ items }: { items: Artifact[] }) {
  return (
    <ul class="artifacts">
      {items.map((one) => (
        <li key={one.id}>
          <a href={contentOf(one.id)} target="_blank" rel="noopener">
            {one.name}
          </a>
          <span class="muted">
            {one.mime} · {bytes(one.size)} · <Ago ms={one.created_ms} />
          </span>
        </li>
      ))}
    </ul>
  );
}
