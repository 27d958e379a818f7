/** Counts of facets, and where the words of a search stand in a text. */

export const FACETS = [["platform", "Platform"], ["format", "Format"], ["owner", "Owner"], ["tag", "Tag"]] as const;
export type Facet = (typeof FACETS)[number][0];

export interface Hit {
  urn: string;
  name: string;
  platform: string;
  format: string | null;
  location: string | null;
  description: string | null;
  owners: readonly string[];
  tags: readonly string[];
  fields: readonly string[];
  schemaVersion: string | null;
  modified: string | null;
}

/** The values of a facet and how many results have each, most first. */
export function countFacet(hits: readonly Pick<Hit, "platform" | "format" | "owners" | "tags">[], facet: Facet): Map<string, number> {
  const counts = new Map<string, number>();
  for (const hit of hits) {
    const values = facet === "platform" ? [hit.platform] : facet === "format" ? (hit.format === null ? [] : [hit.format]) : facet === "owner" ? hit.owners : hit.tags;
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return new Map([...counts.entries()].sort((one, two) => two[1] - one[1] || one[0].localeCompare(two[0])));
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
