/** Facets of a search, and the positions of its words in a text. */
import { visible } from "../ui/format";

/** The page itself filters the results that it has by these facets; the server filters by the others. */
export const PAGE_FACETS = ["domain", "term", "freshness", "cost"] as const;

export const FACETS = [
  ["platform", "Platform"], ["format", "Format"], ["owner", "Owner"], ["domain", "Domain"],
  ["tag", "Tag"], ["term", "Term"], ["freshness", "Data from"], ["cost", "Cost a month"],
] as const;
export type Facet = (typeof FACETS)[number][0];
export type Choice = Partial<Record<Facet, string>>;

export interface Hit {
  urn: string;
  name: string;
  platform: string;
  format: string | null;
  location: string | null;
  description: string | null;
  owners: readonly string[];
  tags: readonly string[];
  domain: string | null;
  terms: readonly string[];
  fields: readonly string[];
  schemaVersion: string | null;
  modified: string | null;
  /** The class of its cost, or null if no cost is known. */
  cost: string | null;
}

/** The path of a dataset without its name, which tells apart datasets of the same name. */
export function folderOf(urn: string): string {
  const parts = urn.replace(/^lumos:\/\/[^/]*\//, "").replace(/\?env=.*$/, "").split("/").slice(0, -1);
  return visible(parts.map((each) => { try { return decodeURIComponent(each); } catch { return each; } }).join("/"));
}

const HOUR = 3_600_000;
const AGES: readonly (readonly [hours: number, name: string])[] = [[24, "the last day"], [7 * 24, "the last week"], [30 * 24, "the last month"], [365 * 24, "the last year"]];
const OLDER = "earlier";

/** The class of an age; each class excludes the ones before it. */
export function freshness(modified: string | null, now: number): string | null {
  if (modified === null) return null;
  const age = (now - Date.parse(modified)) / HOUR;
  return AGES.find(([hours]) => age <= hours)?.[1] ?? OLDER;
}

const LIMITS = [1000, 100, 10, 1] as const;

/** The class of a cost of a month, such as "100 to 1,000 USD". */
export function costClass(cost: number, currency: string): string {
  const text = (value: number) => value.toLocaleString("en-US");
  const index = LIMITS.findIndex((limit) => cost >= limit);
  if (index === 0) return `over ${text(LIMITS[0])} ${currency}`;
  if (index < 0) return `under ${text(LIMITS[LIMITS.length - 1] ?? 1)} ${currency}`;
  return `${text(LIMITS[index] ?? 0)} to ${text(LIMITS[index - 1] ?? 0)} ${currency}`;
}

function valuesOf(hit: Hit, facet: Facet, now: number): readonly string[] {
  const one = (value: string | null) => (value === null || value === "" ? [] : [value]);
  switch (facet) {
    case "platform": return [hit.platform];
    case "format": return one(hit.format);
    case "owner": return hit.owners;
    case "tag": return hit.tags;
    case "domain": return one(hit.domain);
    case "term": return hit.terms;
    case "freshness": return one(freshness(hit.modified, now));
    case "cost": return one(hit.cost);
  }
}

/** The results that match the selected values of the facets that the page filters by. */
export function filterHits(hits: readonly Hit[], choice: Choice, now: number): readonly Hit[] {
  const wanted = PAGE_FACETS.filter((facet) => choice[facet] !== undefined);
  return wanted.length === 0 ? hits : hits.filter((hit) => wanted.every((facet) => valuesOf(hit, facet, now).includes(choice[facet] ?? "")));
}

// Classes are listed in their own order, other values by how many results have them.
const ORDERED: Partial<Record<Facet, readonly string[]>> = { freshness: [...AGES.map(([, name]) => name), OLDER] };

/** The values of a facet and how many results have each. */
export function countFacet(hits: readonly Hit[], facet: Facet, now: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (const hit of hits) for (const value of valuesOf(hit, facet, now)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const order = ORDERED[facet];
  const sum = (text: string) => Number(/[\d,]+/.exec(text)?.[0].replaceAll(",", "") ?? 0) - (text.startsWith("under") ? 1 : 0) + (text.startsWith("over") ? 1 : 0);
  return new Map([...counts.entries()].sort((one, two) => {
    if (order !== undefined) return order.indexOf(one[0]) - order.indexOf(two[0]);
    if (facet === "cost") return sum(two[0]) - sum(one[0]);
    return two[1] - one[1] || one[0].localeCompare(two[0]);
  }));
}

export function splitAtWords(text: string, words: readonly string[]): { text: string; hit: boolean }[] {
  const lower = text.toLowerCase();
  const marked = new Array<boolean>(text.length).fill(false);
  for (const word of words) {
    const wanted = word.toLowerCase();
    if (wanted === "") continue;
    for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) marked.fill(true, at, at + wanted.length);
  }
  const parts: { text: string; hit: boolean }[] = [];
  for (let index = 0; index < text.length; index += 1) {
    const hit = marked[index] ?? false;
    const last = parts.at(-1);
    if (last !== undefined && last.hit === hit) last.text += text[index] ?? "";
    else parts.push({ text: text[index] ?? "", hit });
  }
  return parts;
}
