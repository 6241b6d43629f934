import { useEffect, useState } from "preact/hooks";
import { jobPage, queuePage } from "../addresses";
import { hasMore, openedFlow, type Opened } from "../api/jobs";
import type { FlowNode, State } from "../api/wire";
import { FlowGraph } from "../charts/flowgraph";
import { plural } from "../format";
import { keyOf } from "../jobs/actions";
import { useLiveReload } from "../live/live";
import { useLoad } from "../state/load";
import { Card, Page } from "../ui/page";
import { ALL_STATES, StateBadge } from "../ui/state";
import { View } from "../ui/view";

export function FlowPage({ queue, id }: { queue: string; id: string }) {
  const ref = { queue, id };
  const [opened, setOpened] = useState<Opened>(new Map());
  const load = useLoad(`flow ${queue}/${id}`, (abort) => openedFlow(ref, opened, abort));
  const { reload } = load;
  useEffect(() => {
    if (opened.size > 0) reload();
  }, [opened, reload]);
  // Each node that was opened is a question of its own.
  useLiveReload(reload, { everyMs: opened.size === 0 ? 750 : 3_000 });
  const open = (node: FlowNode): void => setOpened((before) => new Map(before).set(keyOf(node), (before.get(keyOf(node)) ?? 0) + 1));
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
        <View of={load}>{(root) => <FlowGraph root={root} current={ref} onMore={open} />}</View>
      </Card>
    </Page>
  );
}

function inWords(root: FlowNode): string {
  const counts = new Map<State | null, number>();
  let isWhole = true;
  const visit = (node: FlowNode): void => {
    counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
    if (hasMore(node)) isWhole = false;
    for (const child of node.children) visit(child);
  };
  visit(root);
  const jobs = [...counts.values()].reduce((sum, one) => sum + one, 0);
  const parts = ALL_STATES.filter((state) => counts.has(state)).map((state) => `${counts.get(state)} ${state.replace("-", " for ")}`);
  return `${plural(jobs, "job")}${isWhole ? "" : " shown, and there are more"}: ${parts.join(", ")}`;
}
