// Where the nodes of a tree stand: depth to the right, leaves below each other, parents beside their middle.
import { hasMore } from "../api/jobs";
import type { FlowNode } from "../api/wire";

export const NODE_WIDTH = 222;
export const NODE_HEIGHT = 46;
const COLUMN = NODE_WIDTH + 56;
const ROW = NODE_HEIGHT + 14;
const MARGIN = 2;

export interface PlacedNode {
  node: FlowNode;
  x: number;
  y: number;
}

/** Where those children of a node would begin that are not shown. */
export interface MorePlace {
  of: PlacedNode;
  x: number;
  y: number;
}

export interface Edge {
  from: PlacedNode;
  to: PlacedNode | MorePlace;
}

export interface FlowLayout {
  nodes: PlacedNode[];
  edges: Edge[];
  more: MorePlace[];
  width: number;
  height: number;
}

export function layOut(root: FlowNode): FlowLayout {
  const nodes: PlacedNode[] = [];
  const edges: Edge[] = [];
  const more: MorePlace[] = [];
  let nextRow = 0;
  let deepest = 0;

  function place(node: FlowNode, depth: number): PlacedNode {
    deepest = Math.max(deepest, depth);
    const placed: PlacedNode = { node, x: MARGIN + depth * COLUMN, y: 0 };
    const below: (PlacedNode | MorePlace)[] = node.children.map((child) => place(child, depth + 1));
    if (hasMore(node)) {
      deepest = Math.max(deepest, depth + 1);
      const rest = { of: placed, x: placed.x + COLUMN, y: MARGIN + nextRow++ * ROW };
      more.push(rest);
      below.push(rest);
    }
    const first = below[0];
    const last = below.at(-1);
    placed.y = first && last ? (first.y + last.y) / 2 : MARGIN + nextRow++ * ROW;
    nodes.push(placed);
    for (const one of below) edges.push({ from: placed, to: one });
    return placed;
  }

  place(root, 0);
  return {
    nodes,
    edges,
    more,
    width: deepest * COLUMN + NODE_WIDTH + 2 * MARGIN,
    height: Math.max(1, nextRow) * ROW - (ROW - NODE_HEIGHT) + 2 * MARGIN,
  };
}
