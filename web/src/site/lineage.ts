/** Walks over the lineage of a site, as the store walks over its own. */
import type { Schemas } from "../api/client";

export interface LineageData {
  urns: readonly string[];
  upstream: readonly number[];
  downstream: readonly number[];
  /** Name, platform, state and owners of datasets that are deleted or only known from lineage. */
  others: Record<string, readonly [name: string, platform: string, state: string, owners: string[]]>;
}

export interface LineageQuery {
  dataset: string;
  side: "both" | "upstream" | "downstream";
  depth?: number;
  limit: number;
}

/** The datasets around one with their distances, negative if upstream, and the links between them. */
export interface Surroundings {
  depths: Map<string, number>;
  links: Set<string>;
  total: number;
  truncated: boolean;
}

export const linkKey = (upstream: string, downstream: string) => `${upstream}\n${downstream}`;

export class LineageGraph {
  readonly #numbers: Map<string, number>;
  readonly #down: Map<number, number[]>;
  readonly #up: Map<number, number[]>;
  readonly data: LineageData;

  constructor(data: LineageData) {
    this.data = data;
    this.#numbers = new Map(data.urns.map((urn, number) => [urn, number]));
    this.#down = new Map();
    this.#up = new Map();
    data.upstream.forEach((upstream, edge) => {
      const downstream = data.downstream[edge] ?? 0;
      push(this.#down, upstream, downstream);
      push(this.#up, downstream, upstream);
    });
  }

  around({ dataset, side, depth, limit }: LineageQuery): Surroundings {
    const depths = new Map<string, number>([[dataset, 0]]);
    const links = new Set<string>();
    const start = this.#numbers.get(dataset);
    let total = 1;
    let truncated = false;
    for (const direction of side === "both" ? (["upstream", "downstream"] as const) : [side]) {
      if (start === undefined) continue;
      const walk = this.#walk(start, direction, depth);
      total += walk.reached.size - 1;
      truncated ||= walk.truncated || walk.reached.size > limit;
      const listed = new Map([...walk.reached].sort((one, two) => one[1] - two[1] || one[0] - two[0]).slice(0, limit));
      for (const [number, steps] of listed) {
        const urn = this.data.urns[number] ?? "";
        const signed = direction === "upstream" ? -steps : steps;
        const known = depths.get(urn);
        if (known === undefined || Math.abs(signed) < Math.abs(known)) depths.set(urn, signed);
        for (const next of (direction === "upstream" ? this.#up : this.#down).get(number) ?? []) {
          if (!listed.has(next)) continue;
          const other = this.data.urns[next] ?? "";
          links.add(direction === "upstream" ? linkKey(other, urn) : linkKey(urn, other));
        }
      }
    }
    return { depths, links, total, truncated };
  }

  #walk(start: number, direction: "upstream" | "downstream", depth: number | undefined): { reached: Map<number, number>; truncated: boolean } {
    const edges = direction === "upstream" ? this.#up : this.#down;
    const reached = new Map([[start, 0]]);
    let frontier = [start];
    for (let level = 0; frontier.length > 0; level += 1) {
      const next = new Set<number>();
      for (const number of frontier) for (const other of edges.get(number) ?? []) if (!reached.has(other)) next.add(other);
      if (depth !== undefined && level >= depth) return { reached, truncated: next.size > 0 };
      for (const other of next) reached.set(other, level + 1);
      frontier = [...next];
    }
    return { reached, truncated: false };
  }
}

function push(map: Map<number, number[]>, key: number, value: number): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** The columns that some edges mention, by dataset. */
export function columnsIn(arrows: readonly Schemas["Arrow"][]): Map<string, Set<string>> {
  const columns = new Map<string, Set<string>>();
  const add = (urn: string, column: string) => {
    const known = columns.get(urn);
    if (known === undefined) columns.set(urn, new Set([column]));
    else known.add(column);
  };
  for (const arrow of arrows) {
    for (const mapping of arrow.columns ?? []) {
      add(arrow.upstream, mapping.upstream);
      add(arrow.downstream, mapping.downstream);
    }
    for (const use of arrow.uses ?? []) {
      add(arrow.upstream, use.upstream);
      if (use.downstream !== null && use.downstream !== undefined) add(arrow.downstream, use.downstream);
    }
  }
  return columns;
}
