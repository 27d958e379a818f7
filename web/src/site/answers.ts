/** Answers the requests of the pages from the files of a site, as the API would. */
import type { Schemas, Transport } from "../api/client";
import { LineageGraph, columnsIn, linkKey, type LineageData } from "./lineage";
import { list, search, type Row, type Vocabulary } from "./search";
import { fileOf, type Load } from "./shards";

interface Answers {
  answers: Record<string, unknown>;
  dataset_files: number;
  edge_files: number;
}

interface DatasetRecord {
  show: unknown;
  history?: unknown;
  diffs?: Record<string, unknown>;
  usage?: unknown;
  partitions?: unknown;
  cost?: unknown;
  trend?: unknown;
  annotations: unknown[];
}

type Event = Schemas["EventReport"];

/** What a site cannot answer: `status` and the sentence for the person. */
class Refusal extends Error {
  status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const PREFIX = "/api/v1/";
const COLUMNS_UP_TO = 40;

/** A transport that answers from the files that `load` reads. */
export function answerer(load: Load): Transport {
  const site = new Site(load);
  return async (request) => {
    const url = new URL(request.url);
    const headers = { "Content-Type": "application/json" };
    try {
      if (request.method !== "GET") throw new Refusal(405, "A static site cannot be changed. Use the server.");
      const body = await site.answer(url.pathname.slice(url.pathname.indexOf(PREFIX) + PREFIX.length), url.searchParams);
      return new Response(JSON.stringify(body), { headers });
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const status = error instanceof Refusal ? error.status : 404;
      return new Response(JSON.stringify({ detail: error.message, status }), { status, headers });
    }
  };
}

class Site {
  readonly #load: Load;
  #graph: Promise<LineageGraph> | undefined;
  #rows: Promise<{ rows: Row[]; byUrn: Map<string, Row> }> | undefined;

  constructor(load: Load) {
    this.#load = load;
  }

  async answer(path: string, query: URLSearchParams): Promise<unknown> {
    const get = (name: string) => query.get(name) ?? undefined;
    const need = (name: string) => {
      const value = get(name);
      if (value === undefined) throw new Refusal(400, `The parameter ${name} is missing.`);
      return value;
    };
    if (path === "changes") return this.#changes(query);
    if (path === "datasets") return this.#list(query);
    if (path === "search") {
      const [vocabulary, { rows }] = await Promise.all([this.#load<Vocabulary>("vocabulary"), this.#allRows()]);
      return search(vocabulary, rows, { text: get("text") ?? "", platform: get("platform"), format: get("format"), owner: get("owner"), tag: get("tag"), limit: Number(get("limit") ?? 20) });
    }
    if (path === "lineage/show") return this.#lineage(need("dataset"), query);
    if (path === "datasets/show") return (await this.#dataset(need("urn"))).show;
    if (path === "schemas/history") return present((await this.#dataset(need("name"))).history, "No version of this dataset has been recorded.");
    if (path === "schemas/diff") {
      const [urn, before] = splitVersion(need("before"));
      const [, after] = splitVersion(need("after"));
      return this.#diff(urn, before, after);
    }
    if (path === "usage/show") {
      const record = await this.#dataset(need("dataset"));
      return record.usage ?? { urn: need("dataset"), known_since: null, reads: 0, readers: [], columns: {}, days: [] };
    }
    if (path === "datasets/partitions") return (await this.#dataset(need("dataset"))).partitions ?? { days: [] };
    if (path === "annotations") return { words: (await this.#dataset(need("dataset"))).annotations };
    if (path === "cost/report") return present((await this.#dataset(need("urn"))).cost, "This site has the costs of the most expensive datasets only.");
    if (path === "cost/trend" && get("urn") !== undefined) return present((await this.#dataset(need("urn"))).trend, "No earlier period is recorded for this dataset.");
    return this.#recorded(path, query);
  }

  async #recorded(path: string, query: URLSearchParams): Promise<unknown> {
    const { answers } = await this.#load<Answers>("answers");
    const parts = [...query].sort(([one], [two]) => (one < two ? -1 : 1)).map(([name, value]) => `${name}=${value}`).join("&");
    const key = parts === "" ? path : `${path}?${parts}`;
    if (!(key in answers)) throw new Refusal(404, "This is not part of a static site. Use the server.");
    const answer = answers[key];
    if (typeof answer === "object" && answer !== null && "refused" in answer) throw new Refusal(400, String(answer.refused));
    return answer;
  }

  async #dataset(urn: string): Promise<DatasetRecord> {
    const { dataset_files: count } = await this.#load<Answers>("answers");
    const records = await this.#load<Record<string, DatasetRecord>>(`datasets-${fileOf(urn, count)}`);
    return present(records[urn], `No dataset '${urn}' in this site.`);
  }

  async #diff(urn: string, before: string, after: string): Promise<unknown> {
    if (before === after) return { datasets: [], summary: {} };
    const { diffs = {} } = await this.#dataset(urn);
    return present(diffs[`${before} ${after}`], `This site has no comparison of ${before} with ${after}. Choose an older version on the left, and versions that follow each other.`);
  }

  async #changes(query: URLSearchParams): Promise<unknown> {
    const since = query.get("since");
    const types = query.getAll("types");
    const urn = query.get("dataset");
    const events = (await this.#load<Event[]>("changes"))
      .filter((event) => since === null || Date.parse(event.timestamp) >= Date.parse(since))
      .filter((event) => query.get("breaking") !== "true" || event.breaking)
      .filter((event) => types.length === 0 || types.includes(event.type))
      .filter((event) => urn === null || event.urn === urn)
      .slice(0, Number(query.get("limit") ?? 100));
    const breaking = events.filter((event) => event.breaking);
    const summary = { events: events.length, breaking: breaking.length, datasets: new Set(events.map((event) => event.urn)).size, breaking_changes: breaking.reduce((sum, event) => sum + (event.breaking_changes ?? 0), 0) };
    return { format_version: "1.0", events, summary };
  }

  async #list(query: URLSearchParams): Promise<unknown> {
    const get = (name: string) => query.get(name) ?? undefined;
    const wanted = { platform: get("platform"), format: get("format"), after: get("after"), limit: Number(get("limit") ?? 1000) };
    const { files } = await this.#load<Vocabulary>("vocabulary");
    // The first file has enough rows for most lists.
    if (files > 0) {
      const first = list(await this.#load<Row[]>("index-0"), wanted);
      if (first.has_more || files === 1) return first;
    }
    return list((await this.#allRows()).rows, wanted);
  }

  #allRows(): Promise<{ rows: Row[]; byUrn: Map<string, Row> }> {
    this.#rows ??= (async () => {
      const { files } = await this.#load<Vocabulary>("vocabulary");
      const parts = await Promise.all(Array.from({ length: files }, (_, number) => this.#load<Row[]>(`index-${number}`)));
      const rows = parts.flat();
      return { rows, byUrn: new Map(rows.map((row) => [row[0], row])) };
    })();
    return this.#rows;
  }

  async #lineage(dataset: string, query: URLSearchParams): Promise<Schemas["LineageReport"]> {
    this.#graph ??= this.#load<LineageData>("lineage").then((data) => new LineageGraph(data));
    const [graph, { byUrn }, { edge_files: count }] = await Promise.all([this.#graph, this.#allRows(), this.#load<Answers>("answers")]);
    const { others } = graph.data;
    if (!byUrn.has(dataset) && !(dataset in others)) throw new Refusal(404, `No dataset '${dataset}' in this site.`);
    const side = (query.get("side") ?? "both") as "both" | "upstream" | "downstream";
    const depth = query.get("depth");
    const { depths, links, total, truncated } = graph.around({ dataset, side, depth: depth === null ? undefined : Number(depth), limit: Number(query.get("limit") ?? 500) });
    const files = new Set([...links].map((link) => fileOf(link.slice(link.indexOf("\n") + 1), count)));
    const parts = await Promise.all([...files].map((file) => this.#load<Schemas["Arrow"][]>(`edges-${file}`)));
    const arrows = parts.flat().filter((arrow) => links.has(linkKey(arrow.upstream, arrow.downstream)));
    arrows.sort((one, two) => compare(one.upstream, two.upstream) || compare(one.downstream, two.downstream));
    const columns = depths.size <= COLUMNS_UP_TO ? columnsIn(arrows) : new Map<string, Set<string>>();
    const boxes = [...depths].sort((one, two) => one[1] - two[1] || compare(one[0], two[0])).map(([urn, steps]) => {
      const row = byUrn.get(urn);
      const [name, platform, state, owners] = row === undefined ? (others[urn] ?? [urn, "", "", []]) : [row[1], row[2], "live", row[6]];
      return { urn, name, platform, depth: steps, state, owners: [...new Set(owners)], columns: [...(columns.get(urn) ?? [])].sort() };
    });
    return { format_version: "1.0", urn: dataset, column: null, direction: side, depth: depth === null ? null : Number(depth), nodes: boxes, edges: arrows, cycles: [], total, truncated } as Schemas["LineageReport"];
  }
}

function compare(one: string, two: string): number {
  return one < two ? -1 : one > two ? 1 : 0;
}

function present<T>(value: T | undefined, sentence: string): T {
  if (value === undefined) throw new Refusal(404, sentence);
  return value;
}

/** `urn@1.2.0` as its two parts. */
function splitVersion(text: string): [string, string] {
  const at = text.lastIndexOf("@");
  return [text.slice(0, at), text.slice(at + 1)];
}
