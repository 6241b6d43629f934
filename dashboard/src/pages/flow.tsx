import { jobPage, queuePage } from "../addresses";
import { flow } from "../api/jobs";
import type { FlowNode, State } from "../api/wire";
import { FlowGraph } from "../charts/flowgraph";
import { plural } from "../format";
import { useLiveReload } from "../live/live";
import { useLoad } from "../state/load";
import { Card, Page } from "../ui/page";
import { ALL_STATES, StateBadge } from "../ui/state";
import { View } from "../ui/view";

export function FlowPage({ queue, id }: { queue: string; id: string }) {
  const ref = { queue, id };
  const load = useLoad(`flow ${queue}/${id}`, (abort) => flow(ref, abort));
  useLiveReload(load.reload, { everyMs: 750 });
  return (
    <Page
      title={load.data ? `Flow of ${load.data.name ?? id}` : "Flow"}
      trail={
        <>
          <a href={queuePage(queue)}>{queue}</a>
          <a href={jobPage(ref)}>{id}</a>
        </>
      }
      badge={load.data?.state && <StateBadge state={load.data.state} />}
      lead={load.data && inWords(load.data)}
    >
      <Card>
        <View of={load}>{(root) => <FlowGraph root={root} current={ref} />}</View>
      </Card>
    </Page>
  );
}

function inWords(root: FlowNode): string {
  const counts = new Map<State | null, number>();
  const visit = (node: FlowNode): void => {
    counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
    for (const child of node.children) visit(child);
  };
  visit(root);
  const jobs = [...counts.values()].reduce((sum, one) => sum + one, 0);
  const parts = ALL_STATES.filter((state) => counts.has(state)).map((state) => `${counts.get(state)} ${state.replace("-", " for ")}`);
  return `${plural(jobs, "job")}: ${parts.join(", ")}`;
}
