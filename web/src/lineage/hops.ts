/** Which datasets of a graph are drawn: those within some hops, and what people expand or collapse. */

export interface Link {
  upstream: string;
  downstream: string;
}

export type Direction = "upstream" | "downstream";

/** How a dataset can be expanded or collapsed in a direction. */
export interface Hop {
  /** Neighbours that are not drawn. */
  hidden: number;
  /** Whether its neighbours are drawn because of it. */
  isOpen: boolean;
}

export interface VisibleGraph {
  urns: Set<string>;
  hops: Map<string, Partial<Record<Direction, Hop>>>;
}

export const hopKey = (urn: string, direction: Direction) => `${direction} ${urn}`;

/** Walk from the focus; a dataset shows its neighbours if it is near enough, or if it was expanded. */
export function visibleGraph(links: readonly Link[], focus: string, limit: number, changed: ReadonlyMap<string, boolean>): VisibleGraph {
  const urns = new Set([focus]);
  const walked: [urn: string, direction: Direction, isOpen: boolean, next: readonly string[]][] = [];
  for (const direction of ["upstream", "downstream"] as const) {
    const neighbours = new Map<string, string[]>();
    for (const link of links) {
      const [here, there] = direction === "upstream" ? [link.downstream, link.upstream] : [link.upstream, link.downstream];
      if (here === there) continue;
      const list = neighbours.get(here);
      if (list === undefined) neighbours.set(here, [there]);
      else list.push(there);
    }
    const seen = new Set([focus]);
    let level = [focus];
    for (let depth = 0; level.length > 0; depth += 1) {
      const next: string[] = [];
      for (const urn of level) {
        const around = neighbours.get(urn) ?? [];
        const isOpen = changed.get(hopKey(urn, direction)) ?? depth < limit;
        if (around.length > 0) walked.push([urn, direction, isOpen, around]);
        if (!isOpen) continue;
        for (const other of around) {
          if (seen.has(other)) continue;
          seen.add(other);
          urns.add(other);
          next.push(other);
        }
      }
      level = next;
    }
  }
  const hops = new Map<string, Partial<Record<Direction, Hop>>>();
  for (const [urn, direction, isOpen, around] of walked) {
    const hidden = new Set(around.filter((other) => !urns.has(other))).size;
    // What is drawn through other datasets cannot be collapsed here.
    if (hidden > 0 || isOpen) hops.set(urn, { ...hops.get(urn), [direction]: { hidden, isOpen } });
  }
  return { urns, hops };
}
