// A flow as a graph: a job to the left, those it waits for to its right.
import { useMemo } from "preact/hooks";
import { flowPage, jobPage } from "../addresses";
import type { FlowNode, JobRef } from "../api/wire";
import { keyOf } from "../jobs/actions";
import { shortId } from "../jobs/columns";
import { stateName } from "../ui/state";
import { layOut, NODE_HEIGHT, NODE_WIDTH, type Edge, type MorePlace, type PlacedNode } from "./flowlayout";

const NAME_LENGTH = 24;
const ID_LENGTH = 29;
const MORE_WIDTH = 96;

interface FlowGraphProps {
  root: FlowNode;
  current?: JobRef;
  /** Shows more children of a node; without it they are on the page of the flow. */
  onMore?: (node: FlowNode) => void;
}

export function FlowGraph({ root, current, onMore }: FlowGraphProps) {
  const layout = useMemo(() => layOut(root), [root]);
  return (
    <div class="flow" tabIndex={0} role="region" aria-label="Flow graph">
      <svg width={layout.width} height={layout.height} role="group" aria-label={`Flow of ${root.name}: ${layout.nodes.length} jobs`}>
        {layout.edges.map((edge) => (
          <path key={"node" in edge.to ? keyOf(edge.to.node) : `more of ${keyOf(edge.from.node)}`} class={"node" in edge.to ? "flow-edge" : "flow-edge is-more"} d={curve(edge)} />
        ))}
        {layout.nodes.map((placed) => (
          <Node key={keyOf(placed.node)} placed={placed} isCurrent={isSame(placed.node, current)} />
        ))}
        {layout.more.map((place) => (
          <More key={keyOf(place.of.node)} place={place} onMore={onMore} />
        ))}
      </svg>
    </div>
  );
}

function Node({ placed, isCurrent }: { placed: PlacedNode; isCurrent: boolean }) {
  const { node, x, y } = placed;
  const state = node.state ?? "gone";
  const name = node.name ?? "gone";
  return (
    <a href={jobPage(node)} class={`flow-node state-${state}`}>
      <g transform={`translate(${x} ${y})`}>
        <title>{`${name} · ${node.queue}/${node.id} · ${stateName(state)}`}</title>
        <rect class={isCurrent ? "flow-box is-current" : "flow-box"} width={NODE_WIDTH} height={NODE_HEIGHT} rx="8" />
        <rect class={`flow-stripe fill-${state}`} x="0" y="8" width="3" height={NODE_HEIGHT - 16} rx="1.5" />
        <text class="flow-name" x="14" y="19">
          {cut(name, NAME_LENGTH)}
        </text>
        <text class="flow-id" x="14" y="35">
          {cut(`${node.queue} · ${shortId(node.id)}`, ID_LENGTH)}
        </text>
        <circle class={`flow-dot fill-${state}`} cx={NODE_WIDTH - 14} cy="15" r="4" />
      </g>
    </a>
  );
}

/** A link for those who follow links: where nobody loads more here, it leads to a page that does. */
function More({ place, onMore }: { place: MorePlace; onMore: FlowGraphProps["onMore"] }) {
  const { node } = place.of;
  function load(event: MouseEvent): void {
    if (!onMore) return;
    event.preventDefault();
    onMore(node);
  }
  return (
    <a href={flowPage(node)} class="flow-more" aria-label={`Show more below ${node.name ?? node.id}`} onClick={load}>
      <g transform={`translate(${place.x} ${place.y})`}>
        <rect class="flow-box" width={MORE_WIDTH} height={NODE_HEIGHT} rx="8" />
        <text class="flow-more-text" x="14" y="28">
          Show more
        </text>
      </g>
    </a>
  );
}

function curve({ from, to }: Edge): string {
  const startX = from.x + NODE_WIDTH;
  const startY = from.y + NODE_HEIGHT / 2;
  const endY = to.y + NODE_HEIGHT / 2;
  const middleX = (startX + to.x) / 2;
  return `M${startX} ${startY}C${middleX} ${startY} ${middleX} ${endY} ${to.x} ${endY}`;
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

function isSame(node: FlowNode, other: JobRef | undefined): boolean {
  return other !== undefined && node.queue === other.queue && node.id === other.id;
}
