/** A layout for very large graphs: layers by longest path, ordered by the positions of neighbours. */
import type { LayoutBox, LayoutEdge, Positions } from "./layout";

const SWEEPS = 4;

/** The layer of each box: one more than that of its furthest upstream box; cycles are cut. */
export function layersOf(ids: readonly string[], edges: readonly LayoutEdge[]): Map<string, number> {
  const down = new Map<string, string[]>(ids.map((id) => [id, []]));
  const waiting = new Map<string, number>(ids.map((id) => [id, 0]));
  for (const { source, target } of edges) {
    if (source === target || !down.has(source) || !waiting.has(target)) continue;
    down.get(source)?.push(target);
    waiting.set(target, (waiting.get(target) ?? 0) + 1);
  }
  const layers = new Map<string, number>();
  let ready = ids.filter((id) => waiting.get(id) === 0);
  const left = new Set(ids);
  while (left.size > 0) {
    if (ready.length === 0) {
      // Everything left is on or behind a cycle: begin with the first.
      const [first] = left;
      ready = [first as string];
    }
    const next: string[] = [];
    for (const id of ready) {
      if (!left.delete(id)) continue;
      const layer = layers.get(id) ?? 0;
      layers.set(id, layer);
      for (const target of down.get(id) ?? []) {
        if (!left.has(target)) continue;
        layers.set(target, Math.max(layers.get(target) ?? 0, layer + 1));
        const remaining = (waiting.get(target) ?? 1) - 1;
        waiting.set(target, remaining);
        if (remaining === 0) next.push(target);
      }
    }
    ready = next;
  }
  return layers;
}

export function layeredLayout(boxes: readonly LayoutBox[], edges: readonly LayoutEdge[], width: number, gap: number, space: number): Positions {
  const layers = layersOf(boxes.map((each) => each.id), edges);
  const rows: LayoutBox[][] = [];
  for (const box of boxes) {
    const layer = layers.get(box.id) ?? 0;
    (rows[layer] ??= []).push(box);
  }
  const neighbours = new Map<string, string[]>(boxes.map((each) => [each.id, []]));
  for (const { source, target } of edges) {
    neighbours.get(source)?.push(target);
    neighbours.get(target)?.push(source);
  }
  const centre = new Map<string, number>();
  const place = (row: readonly LayoutBox[]) => {
    const total = row.reduce((sum, each) => sum + each.height + space, 0);
    let top = -total / 2;
    for (const each of row) {
      centre.set(each.id, top + each.height / 2);
      top += each.height + space;
    }
  };
  rows.forEach(place);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      if (row === undefined) continue;
      const mean = new Map(row.map((each) => {
        const around = (neighbours.get(each.id) ?? []).map((id) => centre.get(id) ?? 0);
        return [each.id, around.length === 0 ? (centre.get(each.id) ?? 0) : around.reduce((sum, value) => sum + value, 0) / around.length];
      }));
      row.sort((one, two) => (mean.get(one.id) ?? 0) - (mean.get(two.id) ?? 0));
      place(row);
    }
  }
  return new Map(boxes.map((box) => [box.id, { x: (layers.get(box.id) ?? 0) * (width + gap), y: (centre.get(box.id) ?? 0) - box.height / 2 }]));
}
