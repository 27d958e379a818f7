/** Search over the index of a site, with the tiers of the store: exact name, name, path, anywhere. */
import type { Schemas } from "../api/client";

/** All words of the site, sorted, and all columns; rows refer to both by position. */
export interface Vocabulary {
  words: readonly string[];
  columns: readonly string[];
  column_words: readonly (readonly number[])[];
  path_words: readonly (readonly number[])[];
  files: number;
  datasets: number;
}

/** A dataset, in the order of IndexRow in site/search_index.py. */
export type Row = readonly [
  urn: string, name: string, platform: string, format: string | null, location: string | null, description: string | null,
  owners: string[], tags: string[], fieldTags: string[], domain: string | null, terms: string[], quality: number | null,
  schemaVersion: string | null, cloudVersion: string | null, modified: string | null, updatedAt: string,
  inName: number[], inPath: number[], inTexts: number[], compounds: string[], columns: number[],
];

export interface Facets {
  platform?: string;
  format?: string;
  owner?: string;
  tag?: string;
}

export interface SearchQuery extends Facets {
  text: string;
  limit: number;
}

interface Range {
  word: string;
  first: number;
  end: number;
}

const MAX_FIELDS = 20;
const MAX_WORDS = 16;
const MAX_COUNTED = 1000;

function withoutAccents(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "");
}

/** A word in lower-case letters and digits; others as code points, as the store writes them. */
function asciiWord(text: string): string {
  return [...text.toLowerCase()].map((char) => (char.codePointAt(0) ?? 0) < 128 ? char : `x${(char.codePointAt(0) ?? 0).toString(16)}x`).join("");
}

export function queryWords(text: string): string[] {
  const runs = withoutAccents(text).match(/[\p{L}\p{N}]+/gu) ?? [];
  return [...new Set(runs.map(asciiWord))].slice(0, MAX_WORDS);
}

function asOneWord(text: string): string {
  return (withoutAccents(text).match(/[\p{L}\p{N}]+/gu) ?? []).map(asciiWord).join("");
}

/** The first position in a sorted list whose word is not before the given one. */
function lowerBound(words: readonly string[], word: string): number {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((words[middle] ?? "") < word) low = middle + 1;
    else high = middle;
  }
  return low;
}

function rangeOf(words: readonly string[], word: string): Range {
  return { word, first: lowerBound(words, word), end: lowerBound(words, `${word}\uffff`) };
}

function has(ids: readonly number[], { first, end }: Range): boolean {
  return ids.some((id) => id >= first && id < end);
}

function passes(row: Row, wanted: Facets): boolean {
  const same = (value: string | null, expected: string | undefined) => expected === undefined || asOneWord(value ?? "") === asOneWord(expected);
  const any = (values: readonly string[], expected: string | undefined) => expected === undefined || values.some((value) => same(value, expected));
  return same(row[2], wanted.platform) && same(row[3], wanted.format) && any(row[6], wanted.owner) && any([...row[7], ...row[8]], wanted.tag);
}

/** The columns that match the most words of a query; their own name must match one. */
function matchingFields(row: Row, vocabulary: Vocabulary, ranges: readonly Range[]): string[] {
  let best = 0;
  let fields: string[] = [];
  for (const id of row[20]) {
    const own = vocabulary.column_words[id] ?? [];
    if (!ranges.some((range) => has(own, range))) continue;
    const path = vocabulary.path_words[id] ?? [];
    const count = ranges.filter((range) => has(path.length === 0 ? own : path, range)).length;
    if (count > best) {
      best = count;
      fields = [];
    }
    if (count === best) fields.push(vocabulary.columns[id] ?? "");
  }
  return fields.slice(0, MAX_FIELDS);
}

/** The datasets that have, for every word, a word that starts with it; best first. */
export function search(vocabulary: Vocabulary, rows: readonly Row[], query: SearchQuery): Schemas["SearchReport"] {
  const words = queryWords(query.text);
  const ranges = words.map((word) => rangeOf(vocabulary.words, word));
  const filters = query.platform ?? query.format ?? query.owner ?? query.tag;
  const whole = words.join("");
  const columnHits = vocabulary.column_words.map((ids, column) => ranges.map((range) => has(ids, range) || has(vocabulary.path_words[column] ?? [], range)));
  const tierOf = (row: Row): number => {
    const inName = ranges.map((range) => has(row[16], range) || row[19].includes(range.word));
    if (asOneWord(row[1]) === whole) return 0;
    if (inName.every(Boolean)) return 1;
    const inPath = ranges.map((range, index) => inName[index] === true || has(row[17], range));
    if (inPath.every(Boolean)) return 2;
    const anywhere = ranges.every((range, index) => inPath[index] === true || has(row[18], range) || row[20].some((column) => columnHits[column]?.[index] === true));
    return anywhere ? 3 : 4;
  };
  const hits: { row: Row; tier: number }[] = [];
  if (words.length > 0 || filters !== undefined) {
    for (const row of rows) {
      const tier = passes(row, query) ? (words.length === 0 ? 3 : tierOf(row)) : 4;
      if (tier < 4) hits.push({ row, tier });
    }
  }
  const letters = words.reduce((sum, word) => sum + word.length, 0);
  const share = (row: Row) => letters / Math.max(row[1].length, 1);
  hits.sort((one, two) => one.tier - two.tier || share(two.row) - share(one.row) || one.row[0].length - two.row[0].length || (one.row[0] < two.row[0] ? -1 : 1));
  return {
    format_version: "1.0",
    query: query.text,
    total: hits.length,
    all_counted: hits.length < MAX_COUNTED,
    results: hits.slice(0, query.limit).map(({ row }) => ({
      urn: row[0], name: row[1], platform: row[2], format: row[3], location: row[4], description: row[5], owners: row[6], tags: row[7],
      quality: row[11], schema_version: row[12], last_modified: row[14],
      fields: words.length === 0 ? [] : matchingFields(row, vocabulary, ranges),
      domain: row[9], terms: row[10],
    })),
    suggestion: null,
    lineage_only: [],
    lineage_only_owners: {},
    consumers: {},
  } as Schemas["SearchReport"];
}

export interface ListQuery {
  platform?: string;
  format?: string;
  after?: string;
  limit: number;
}

export function list(rows: Iterable<Row>, query: ListQuery): Schemas["ListReport"] {
  const found: Row[] = [];
  for (const row of rows) {
    if (query.after !== undefined && row[0] <= query.after) continue;
    if (passes(row, { platform: query.platform, format: query.format })) found.push(row);
    if (found.length > query.limit) break;
  }
  return {
    format_version: "1.0",
    datasets: found.slice(0, query.limit).map((row) => ({
      urn: row[0], name: row[1], platform: row[2], format: row[3], cloud_version: row[13] ?? "", schema_version: row[12] ?? "", fingerprint: "", updated_at: row[15],
    })),
    has_more: found.length > query.limit,
    lineage_only_count: 0,
    lineage_only: [],
  };
}
