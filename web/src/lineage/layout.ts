/** Positions of boxes, computed by ELK in a worker so that the page stays responsive. */
import type { ElkNode } from "elkjs/lib/elk-api";
import { layeredLayout } from "./layers";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";

export const WIDTH = 232;
export const HEAD = 44;
export const ROW = 20;
const GAP = 72;
const SPACE = 22;
// ELK needs many seconds for the crossings of larger graphs.
export const LARGE = 1000;

export interface LayoutBox {
  id: string;
  height: number;
}

export interface LayoutEdge {
  source: string;
  target: string;
}

export type Positions = Map<string, { x: number; y: number }>;

let worker: Promise<import("elkjs/lib/elk-api").ELK> | undefined;

async function engine() {
  worker ??= import("elkjs/lib/elk-api").then(({ default: ELK }) => new ELK({ workerUrl }));
  return worker;
}

export async function layout(boxes: readonly LayoutBox[], edges: readonly LayoutEdge[]): Promise<Positions> {
  // Browsers start no worker for a page that was opened from disk.
  if (boxes.length > LARGE || globalThis.location.protocol === "file:" || !("Worker" in globalThis)) return layeredLayout(boxes, edges, WIDTH, GAP, SPACE);
  const elk = await engine();
  const graph: ElkNode = {
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "RIGHT",
      "elk.layered.spacing.nodeNodeBetweenLayers": String(GAP),
      "elk.spacing.nodeNode": String(SPACE),
      "elk.layered.nodePlacement.strategy": boxes.length > 400 ? "SIMPLE" : "NETWORK_SIMPLEX",
      "elk.layered.thoroughness": boxes.length > 400 ? "1" : "7",
      "elk.edgeRouting": "POLYLINE",
    },
    children: boxes.map(({ id, height }) => ({ id, width: WIDTH, height })),
    edges: edges.map(({ source, target }, index) => ({ id: `e${index}`, sources: [source], targets: [target] })),
  };
  const placed = await elk.layout(graph);
  return new Map((placed.children ?? []).map((each) => [each.id, { x: each.x ?? 0, y: each.y ?? 0 }]));
}
