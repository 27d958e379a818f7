/** Sums over costs. */
import { amount } from "../ui/format";

/** The groups of cost items, the most expensive first. */
export function sortedGroups(items: readonly { group: string; cost: number }[]): string[] {
  const sums = new Map<string, number>();
  for (const each of items) sums.set(each.group, (sums.get(each.group) ?? 0) + each.cost);
  return [...sums.entries()].sort((one, two) => two[1] - one[1]).map(([group]) => group);
}

// Less than this is shown as nothing, and a percentage of it says nothing.
const LEAST = 0.005;

export interface Move {
  urn: string;
  name: string;
  change: number;
  percent: number | null;
}

export function topMovers(before: readonly { urn: string; name: string; own: unknown }[], after: readonly { urn: string; name: string; own: unknown }[]): Move[] {
  const past = new Map(before.map((each) => [each.urn, each]));
  const now = new Map(after.map((each) => [each.urn, each]));
  const urns = new Set([...past.keys(), ...now.keys()]);
  return [...urns].map((urn) => {
    const old = amount(past.get(urn)?.own);
    const change = amount(now.get(urn)?.own) - old;
    return { urn, name: (now.get(urn) ?? past.get(urn))?.name ?? urn, change, percent: old < LEAST ? null : (100 * change) / old };
  }).filter((each) => Math.abs(each.change) >= LEAST).sort((one, two) => Math.abs(two.change) - Math.abs(one.change));
}
