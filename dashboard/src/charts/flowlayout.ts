// Where the nodes of a tree stand: depth to the right, leaves below each other, parents beside their middle.
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
  /** Whether it has children that are not shown. */
  hasMore: boolean;
}

export interface Edge {
  from: PlacedNode;
  to: PlacedNode;
}

export interface FlowLayout {
  nodes: PlacedNode[];
  edges: Edge[];
  width: number;
  height: number;
}

export function layOut(root: FlowNode): FlowLayout {
  const nodes: PlacedNode[] = [];
  const edges: Edge[] = [];
  let nextRow = 0;
  let deepest = 0;

  function place(node: FlowNode, depth: number): PlacedNode {
    deepest = Math.max(deepest, depth);
    const children = node.children.map((child) => place(child, depth + 1));
    const first = children[0];
    const last = children.at(-1);
    const y = first && last ? (first.y + last.y) / 2 : MARGIN + nextRow++ * ROW;
    // Deeper or further children than the answer holds are a click away.
    const hasMore = node.next_cursor !== null || (node.has_children && children.length === 0);
    const placed = { node, x: MARGIN + depth * COLUMN, y, hasMore };
    nodes.push(placed);
    for (const child of children) edges.push({ from: placed, to: child });
    return placed;
  }

  place(root, 0);
  return {
    nodes,
    edges,
    width: deepest * COLUMN + NODE_WIDTH + 2 * MARGIN,
    height: Math.max(1, nextRow) * ROW - (ROW - NODE_HEIGHT) + 2 * MARGIN,
  };
}
