/** Which columns and datasets one column comes from and flows into. */

export interface Mapping {
  upstream: string;
  downstream: string;
}

export interface ColumnEdge {
  upstream: string;
  downstream: string;
  columns?: readonly Mapping[];
  uses?: readonly { upstream: string }[];
}

export const columnKey = (urn: string, column: string) => `${urn}\n${column}`;

/** A column of a struct counts as its parent and the other way round. */
function same(one: string, two: string): boolean {
  return one === two || one.startsWith(`${two}.`) || two.startsWith(`${one}.`);
}

/** Every column on a path through the given one, and the datasets that use one of them elsewhere. */
export function columnPath(edges: readonly ColumnEdge[], urn: string, column: string): { columns: Set<string>; datasets: Set<string> } {
  const columns = new Set<string>([columnKey(urn, column)]);
  const datasets = new Set<string>([urn]);
  const from = new Map<string, ColumnEdge[]>();
  const into = new Map<string, ColumnEdge[]>();
  for (const edge of edges) {
    from.set(edge.upstream, [...(from.get(edge.upstream) ?? []), edge]);
    into.set(edge.downstream, [...(into.get(edge.downstream) ?? []), edge]);
  }
  const walk = (start: string, name: string, down: boolean) => {
    const queue: [string, string][] = [[start, name]];
    while (queue.length > 0) {
      const [at, field] = queue.pop() as [string, string];
      for (const edge of (down ? from : into).get(at) ?? []) {
        const next = down ? edge.downstream : edge.upstream;
        for (const mapping of edge.columns ?? []) {
          const here = down ? mapping.upstream : mapping.downstream;
          const there = down ? mapping.downstream : mapping.upstream;
          if (!same(here, field)) continue;
          datasets.add(next);
          const key = columnKey(next, there);
          if (!columns.has(key)) {
            columns.add(key);
            queue.push([next, there]);
          }
        }
        if (down && (edge.uses ?? []).some((use) => same(use.upstream, field))) datasets.add(next);
      }
    }
  };
  walk(urn, column, true);
  walk(urn, column, false);
  return { columns, datasets };
}
