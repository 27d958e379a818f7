/** The rules behind the pages, without a browser. */
import { describe, expect, it } from "vitest";
import { parseEvents } from "../src/api/events";
import { sankeyOf } from "../src/cost/charts";
import { sortedGroups, topMovers } from "../src/cost/rules";
import { childrenOf, splitTop, typeHead } from "../src/dataset/types";
import { annotationText, schemaRows, worst } from "../src/dataset/rules";
import { svgOf } from "../src/lineage/export";
import { layeredLayout, layersOf } from "../src/lineage/layers";
import { columnKey, columnPath } from "../src/lineage/paths";
import { calendar, levels } from "../src/dataset/calendar";
import { EtagChain } from "../src/dataset/etags";
import { distribution, quantileBins } from "../src/dataset/distribution";
import { problemsOfLastScan } from "../src/home/sources";
import { evaluate } from "../src/home/formula";
import { hopKey, visibleGraph } from "../src/lineage/hops";
import { LineageGraph } from "../src/site/lineage";
import { queryWords, search, type Row, type Vocabulary } from "../src/site/search";
import { fileOf } from "../src/site/shards";
import { costClass, countFacet, filterHits, freshness, splitAtWords, type Hit } from "../src/search/rules";
import { formatAge, formatBytes, formatMoney, formatShare, listed, monthBack, shortName, visible, withNames } from "../src/ui/format";

describe("own edits", () => {
  it("lead from the dataset that is shown to the newest one", () => {
    const chain = new EtagChain();
    chain.add("a", "b");
    chain.add("b", "c");
    expect([chain.newest("a"), chain.newest("b"), chain.newest("c"), chain.newest("x")]).toEqual(["c", "c", "c", "x"]);
  });

  it("may lead back to an earlier state", () => {
    const chain = new EtagChain();
    chain.add("a", "b");
    chain.add("b", "a");
    chain.add("a", "a");
    expect([chain.newest("a"), chain.newest("b")]).toEqual(["a", "a"]);
  });
});

describe("types", () => {
  it("become a tree of their fields", () => {
    const tree = childrenOf("STRUCT<page_url: STRING NOT NULL, device: STRUCT<os: STRING, sizes: MAP<STRING, DECIMAL(10,2)>>>", "p");
    expect(tree.map((each) => [each.path, each.type, each.nullable])).toEqual([
      ["p.page_url", "STRING", false],
      ["p.device", "STRUCT<os: STRING, sizes: MAP<STRING, DECIMAL(10,2)>>", true],
    ]);
    expect(tree[1]?.children[1]?.children.map((each) => [each.name, each.type])).toEqual([["key", "STRING"], ["value", "DECIMAL(10,2)"]]);
  });

  it("list the members of an array of structs below the array", () => {
    expect(childrenOf("ARRAY<STRUCT<sku: STRING, n: INT32>>", "items").map((each) => each.path)).toEqual(["items[].sku", "items[].n"]);
    expect(typeHead("ARRAY<STRUCT<sku: STRING>>")).toBe("ARRAY<STRUCT>");
  });

  it("keep names in backticks and enums with commas whole", () => {
    expect(childrenOf("STRUCT<`odd: na``me`: INT64, b: ENUM('a,b','c')>", "s").map((each) => [each.name, each.type])).toEqual([["odd: na`me", "INT64"], ["b", "ENUM('a,b','c')"]]);
    expect(splitTop("a(1,2), b")).toEqual(["a(1,2)", " b"]);
  });

  it("end at a depth, however deep they are nested", () => {
    let type = "INT64";
    for (let turn = 0; turn < 500; turn += 1) type = `STRUCT<a: ${type}>`;
    let depth = 0;
    for (let nodes = childrenOf(type, "x"); nodes.length > 0; nodes = nodes[0]?.children ?? []) depth += 1;
    expect(depth).toBe(24);
  });

  it("show only what is open", () => {
    const fields = [{ name: "a", type: "STRUCT<b: INT64>", nullable: true, nested: [{ path: "a.b", description: "inside" }] }] as never;
    expect(schemaRows(fields, new Set()).length).toBe(1);
    const rows = schemaRows(fields, new Set(["a"]));
    expect(rows.map((each) => [each.node.path, each.depth, each.nested?.description])).toEqual([["a", 0, undefined], ["a.b", 1, "inside"]]);
  });
});

describe("the problems of a source", () => {
  const job = (id: number, finished: string | null, ...problems: string[]) => ({ id, finished_at: finished, problems });
  it("are those that the job of its last scan found below its address", () => {
    const source = { source: "s3:s3://lake/a", last_scan: "2026-11-19T10:00:00Z" };
    const before = job(1, "2026-11-19T09:00:00Z", "s3://lake/a/old: cannot be read");
    const during = job(2, "2026-11-19T10:00:02Z", "s3://lake/a/x: cannot be read", "s3://lake/ab/y: of another source");
    expect(problemsOfLastScan(source, [before, during])).toEqual({ job: 2, problems: ["s3://lake/a/x: cannot be read"] });
    expect(problemsOfLastScan(source, [before, job(3, null, "s3://lake/a/x: running")])).toBeUndefined();
  });
});

describe("fields inside columns", () => {
  it("have the paths by which the server names them", () => {
    const fields = [{ name: "a.b", type: "MAP<STRING, STRUCT<`x y`: INT64>>" }] as never;
    expect([...schemaRows(fields, new Set(["a.b", "`a.b`{}"]))].map((each) => [each.node.name, each.node.path])).toEqual([
      ["a.b", "a.b"], ["key", "`a.b`{key}"], ["value", "`a.b`{}"], ["x y", "`a.b`{}.`x y`"],
    ]);
  });
});

describe("annotations", () => {
  it("name owners with their type", () => {
    expect(annotationText("owner", "TECHNICAL_OWNER:group:finance: EU", null)).toBe("finance: EU (technical owner)");
    expect(annotationText("property", "sla", "06:00")).toBe("sla: 06:00");
    expect(annotationText("tag", "a:b:c", null)).toBe("a:b:c");
  });
});

describe("paths of columns", () => {
  const edges = [
    { upstream: "a", downstream: "b", columns: [{ upstream: "x", downstream: "y" }, { upstream: "k", downstream: "k" }], uses: [] },
    { upstream: "b", downstream: "c", columns: [{ upstream: "y", downstream: "z" }], uses: [] },
    { upstream: "b", downstream: "d", columns: [{ upstream: "k", downstream: "k" }], uses: [{ upstream: "y" }] },
    { upstream: "c", downstream: "a", columns: [{ upstream: "z", downstream: "x" }], uses: [] },
  ];
  it("follow a column both ways, also around a cycle", () => {
    const { columns, datasets } = columnPath(edges, "b", "y");
    expect(columns).toEqual(new Set([columnKey("b", "y"), columnKey("c", "z"), columnKey("a", "x")]));
    expect(datasets).toEqual(new Set(["a", "b", "c", "d"]));
  });
  it("take a struct for its members", () => {
    const nested = [{ upstream: "a", downstream: "b", columns: [{ upstream: "p.url", downstream: "url" }], uses: [] }];
    expect(columnPath(nested, "a", "p").columns.has(columnKey("b", "url"))).toBe(true);
    expect(columnPath(nested, "a", "pu").columns.size).toBe(1);
  });
});

describe("layers", () => {
  it("put a box behind everything upstream of it", () => {
    const layers = layersOf(["c", "b", "a"], [{ source: "a", target: "b" }, { source: "b", target: "c" }, { source: "a", target: "c" }]);
    expect([layers.get("a"), layers.get("b"), layers.get("c")]).toEqual([0, 1, 2]);
  });
  it("end for cycles and for edges to unknown boxes", () => {
    const layers = layersOf(["a", "b"], [{ source: "a", target: "b" }, { source: "b", target: "a" }, { source: "a", target: "x" }, { source: "a", target: "a" }]);
    expect(layers).toEqual(new Map([["a", 0], ["b", 1]]));
  });
  it("place 5,000 boxes without overlaps", () => {
    const boxes = Array.from({ length: 5000 }, (_, index) => ({ id: `t${index}`, height: 44 }));
    const edges = boxes.slice(1).flatMap((_, index) => [{ source: `t${Math.floor(index / 3)}`, target: `t${index + 1}` }]);
    const positions = layeredLayout(boxes, edges, 232, 96, 22);
    const places = new Set([...positions.values()].map(({ x, y }) => `${x} ${Math.round(y)}`));
    expect(places.size).toBe(5000);
  });
});

describe("pictures", () => {
  it("are XML whatever the names are", () => {
    const svg = svgOf([{ urn: "a", name: "<script>&\"'", detail: "", columns: ["]]>"], height: 70 }, { urn: "gone", name: "x", detail: "", columns: [], height: 1 }], [{ source: "a", target: "gone" }], new Map([["a", { x: 0, y: 0 }]]));
    expect(svg).toContain("&#60;script&#62;&#38;&#34;&#39;");
    expect(svg).not.toContain("<script");
    expect(svg).not.toContain("<path");
  });
});

describe("search", () => {
  it("marks words without changing the text", () => {
    const parts = splitAtWords("User_Clicks <b>", ["click", "user"]);
    expect(parts.filter((each) => each.hit).map((each) => each.text)).toEqual(["User", "Click"]);
    expect(parts.map((each) => each.text).join("")).toBe("User_Clicks <b>");
  });
  const now = Date.parse("2026-11-18T00:00:00Z");
  const hit = (values: Partial<Hit>): Hit => ({
    urn: "u", name: "n", platform: "s3", format: null, location: null, description: null, owners: [], tags: [], domain: null, terms: [], fields: [], schemaVersion: null, modified: null, cost: null, ...values,
  });
  it("counts facets, most first", () => {
    const hits = [hit({ format: "parquet", owners: ["a"] }), hit({ owners: ["b", "a"], tags: ["pii"], domain: "sales", terms: ["Revenue"] })];
    expect([...countFacet(hits, "owner", now)]).toEqual([["a", 2], ["b", 1]]);
    expect([...countFacet(hits, "format", now)]).toEqual([["parquet", 1]]);
    expect([...countFacet(hits, "domain", now)]).toEqual([["sales", 1]]);
    expect([...countFacet(hits, "term", now)]).toEqual([["Revenue", 1]]);
  });
  it("puts ages and costs into classes, each in its order", () => {
    const ages = ["2026-11-17T12:00:00Z", "2026-11-13T00:00:00Z", "2026-11-01T00:00:00Z", "2026-02-01T00:00:00Z", "2020-01-01T00:00:00Z"];
    expect(ages.map((at) => freshness(at, now))).toEqual(["the last day", "the last week", "the last month", "the last year", "earlier"]);
    expect(freshness(null, now)).toBeNull();
    expect([5000, 1000, 999, 10, 9.99, 0.2].map((cost) => costClass(cost, "EUR"))).toEqual(["over 1,000 EUR", "over 1,000 EUR", "100 to 1,000 EUR", "10 to 100 EUR", "1 to 10 EUR", "under 1 EUR"]);
    const hits = [0.2, 50, 2, 5000, 50, 400].map((cost) => hit({ cost: costClass(cost, "EUR"), modified: ages[4] ?? null }));
    expect([...countFacet(hits, "cost", now).keys()]).toEqual(["over 1,000 EUR", "100 to 1,000 EUR", "10 to 100 EUR", "1 to 10 EUR", "under 1 EUR"]);
    expect([...countFacet([...hits, hit({ modified: ages[0] ?? null })], "freshness", now).keys()]).toEqual(["the last day", "earlier"]);
  });
  it("filters by everything that was chosen", () => {
    const hits = [hit({ urn: "1", domain: "sales", terms: ["Revenue"] }), hit({ urn: "2", domain: "sales" }), hit({ urn: "3", terms: ["Revenue"] })];
    expect(filterHits(hits, { domain: "sales", term: "Revenue" }, now).map((each) => each.urn)).toEqual(["1"]);
    expect(filterHits(hits, { platform: "gcs" }, now)).toBe(hits);
  });
});

describe("the formula of the home page", () => {
  it("computes sums and products with names", () => {
    expect(evaluate("engineers * 3 * 52 * rate", { engineers: 10, rate: 100 })).toBe(156_000);
    expect(evaluate("1 + 2 * (3 - 5) / 4", {})).toBe(0);
    expect(evaluate("-2 * -a", { a: 4 })).toBe(8);
  });
  it.each([["1 +", "ends too early"], ["(1", "')' is missing"], ["1 / 0", "Division by zero"], ["rat * 2", "Unknown name 'rat'. Use rate."], ["1 2", "Unexpected '2'"], ["constructor", "Unknown name"], ["", "ends too early"]])("says what is wrong with %s", (formula, sentence) => {
    expect(() => evaluate(formula, { rate: 1 })).toThrow(sentence);
  });
});

describe("hops of a graph", () => {
  // a -> b -> c -> d, and b -> e
  const links = [["a", "b"], ["b", "c"], ["c", "d"], ["b", "e"]].map(([upstream = "", downstream = ""]) => ({ upstream, downstream }));
  const shown = (limit: number, ...changed: [string, boolean][]) => visibleGraph(links, "b", limit, new Map(changed));
  it("shows what is near, and how much is hidden behind it", () => {
    const graph = shown(1);
    expect([...graph.urns].sort()).toEqual(["a", "b", "c", "e"]);
    expect(graph.hops.get("c")?.downstream).toEqual({ hidden: 1, isOpen: false });
    expect(graph.hops.get("b")).toEqual({ upstream: { hidden: 0, isOpen: true }, downstream: { hidden: 0, isOpen: true } });
    expect(graph.hops.get("e")).toBeUndefined();
  });
  it("expands and collapses one dataset in one direction", () => {
    expect([...shown(1, [hopKey("c", "downstream"), true]).urns].sort()).toEqual(["a", "b", "c", "d", "e"]);
    expect([...shown(Infinity, [hopKey("b", "downstream"), false]).urns].sort()).toEqual(["a", "b"]);
    expect(shown(Infinity, [hopKey("b", "downstream"), false]).hops.get("b")?.downstream).toEqual({ hidden: 2, isOpen: false });
  });
  it("ends in a cycle", () => {
    expect([...visibleGraph([...links, { upstream: "d", downstream: "a" }], "b", Infinity, new Map()).urns].sort()).toEqual(["a", "b", "c", "d", "e"]);
  });
});

describe("a profile", () => {
  it("is as dense as its quantiles are close", () => {
    const bins = quantileBins({ minimum: "0", maximum: "100", quantiles: { "0.25": "10", "0.5": "20", "0.75": "60" } });
    expect(bins.map((each) => [each.from, each.to])).toEqual([[0, 0.1], [0.1, 0.2], [0.2, 0.6], [0.6, 1]]);
    expect(bins.map((each) => Math.round(100 * each.height))).toEqual([100, 100, 25, 25]);
  });
  it("of dates is drawn like one of numbers, of texts by its frequent values", () => {
    expect(quantileBins({ minimum: "2026-01-01", maximum: "2026-01-03", quantiles: { "0.5": "2026-01-02" } })).toHaveLength(2);
    expect(distribution({ top: [{ value: "a", count: 4 }, { value: "b", count: 1 }] }).map((each) => each.height)).toEqual([1, 0.25]);
    expect(distribution({ nulls: 3, minimum: "5", maximum: "5" })).toEqual([]);
  });
});

describe("a calendar of partitions", () => {
  const day = (text: string, rows: number) => ({ day: text, rows, bytes: rows * 10, files: 1, partitions: 1 });
  it("has a column for each week from Monday, with the missing days", () => {
    const { cells, weeks } = calendar([day("2026-11-13", 5), day("2026-11-16", 7)], ["2026-11-14", "2026-11-15"]);
    expect(weeks).toBe(2);
    expect(cells.map((each) => [each.day, each.week, each.weekday, each.sums?.rows ?? null])).toEqual([["2026-11-13", 0, 4, 5], ["2026-11-14", 0, 5, null], ["2026-11-15", 0, 6, null], ["2026-11-16", 1, 0, 7]]);
  });
  it("shows the latest year", () => {
    expect(calendar([day("2010-01-01", 1), day("2026-11-16", 1)], []).cells.map((each) => each.day)).toEqual(["2026-11-16"]);
    expect(calendar([], []).weeks).toBe(0);
  });
  it("ranks days, so that one huge day does not hide the others", () => {
    const level = levels([1, 2, 3, 4, 1_000_000]);
    expect([1, 2, 3, 4, 1_000_000].map(level)).toEqual([1, 1, 2, 3, 4]);
  });
});

describe("a static site", () => {
  const vocabulary: Vocabulary = { words: ["amount", "lake", "orders", "raw", "sales", "user"], columns: ["amount"], column_words: [[0]], path_words: [[]], files: 1, datasets: 2 };
  const row = (urn: string, name: string, inName: number[], inTexts: number[], columns: number[]): Row =>
    [urn, name, "s3", "parquet", null, null, ["Ann B"], [], ["pii"], null, [], null, "1.0.0", "S-1", null, "2026-01-01T00:00:00Z", inName, [1, 3], inTexts, [], columns];
  const rows = [row("lumos://s3/lake/raw/orders", "orders", [2], [4], [0]), row("lumos://s3/lake/raw/users", "users", [5], [], [])];
  const names = (text: string, facets = {}) => search(vocabulary, rows, { text, limit: 10, ...facets }).results.map((each) => each.name);
  it("finds beginnings of words in names, paths, texts and columns", () => {
    expect(names("ord")).toEqual(["orders"]);
    expect(names("raw")).toEqual(["users", "orders"]);
    expect(names("sal amo")).toEqual(["orders"]);
    expect(search(vocabulary, rows, { text: "amo", limit: 10 }).results[0]?.fields).toEqual(["amount"]);
    expect(names("missing")).toEqual([]);
    expect(names("")).toEqual([]);
  });
  it("filters like the server: without case and separators", () => {
    expect(names("raw", { owner: "annb" })).toHaveLength(2);
    expect(names("", { tag: "PII" })).toHaveLength(2);
    expect(names("raw", { platform: "gcs" })).toEqual([]);
  });
  it("splits queries as the store does", () => {
    expect(queryWords("user_clicks Müller 日本")).toEqual(["user", "clicks", "muller", "x65e5xx672cx"]);
  });
  it("finds the file of a dataset by CRC-32", () => {
    expect(fileOf("123456789", 2 ** 32)).toBe(0xcbf43926);
  });
  it("walks up and down to a depth, and says what it left out", () => {
    // a -> b -> c -> a is a cycle; d is only upstream of c.
    const graph = new LineageGraph({ urns: ["a", "b", "c", "d"], upstream: [0, 1, 2, 3], downstream: [1, 2, 0, 2], others: {} });
    const down = graph.around({ dataset: "a", side: "downstream", depth: 1, limit: 10 });
    expect([...down.depths]).toEqual([["a", 0], ["b", 1]]);
    expect(down.truncated).toBe(true);
    const all = graph.around({ dataset: "a", side: "both", limit: 10 });
    expect(new Map(all.depths)).toEqual(new Map([["a", 0], ["c", -1], ["b", 1], ["d", -2]]));
    expect(all.links.size).toBe(4);
    expect(graph.around({ dataset: "b", side: "upstream", limit: 2 }).depths.size).toBe(2);
  });
});

describe("costs", () => {
  it("rank movers by the amount, and new ones have no percentage", () => {
    const moves = topMovers([{ urn: "a", name: "a", own: 10 }, { urn: "b", name: "b", own: "5.00" }], [{ urn: "a", name: "a", own: 12 }, { urn: "c", name: "c", own: 7 }]);
    expect(moves.map((each) => [each.urn, each.change, each.percent])).toEqual([["c", 7, null], ["b", -5, -100], ["a", 2, 20]]);
    // Bytes that cost less than a cent in the month before are as good as new.
    expect(topMovers([{ urn: "a", name: "a", own: 1e-6 }], [{ urn: "a", name: "a", own: 296 }])[0]?.percent).toBeNull();
  });
  it("group by sum", () => {
    expect(sortedGroups([{ group: "x", cost: 1 }, { group: "y", cost: 3 }, { group: "x", cost: 1 }])).toEqual(["y", "x"]);
  });
  it("flow from teams to types and keep their sum", () => {
    const { nodes, links } = sankeyOf([{ group: "t", own: 10, by_type: { storage: 3, compute: 1 } }], ["t"]);
    expect(nodes.map((each) => each.name)).toEqual(["t", "storage", "compute"]);
    expect(links.reduce((sum, each) => sum + each.value, 0)).toBeCloseTo(10);
  });
});

describe("texts", () => {
  it("are what people expect", () => {
    expect(formatBytes(1536)).toBe("1.5 kB");
    expect(formatShare(1, 3)).toBe("33%");
    expect(formatShare(0, 0)).toBe("–");
    expect(formatMoney("1234.5", "USD")).toBe("$1,235");
    expect(formatMoney(2.5, "EUR")).toBe("€2.50");
    expect(formatMoney(0, "EUR")).toBe("€0");
    expect(formatMoney(0.002, "EUR")).toBe("<€0.01");
    expect(formatAge("2026-01-01T00:00:00Z", Date.parse("2026-01-01T05:10:00Z"))).toBe("5 h ago");
    expect(formatAge("2026-01-01T00:00:00Z", Date.parse("2026-01-02T01:00:00Z"))).toBe("1 day ago");
    expect(shortName("lumos://s3@eu/lake/raw/user%20clicks?env=DEV")).toBe("user clicks");
    expect(shortName("lumos://s3/%zz")).toBe("%zz");
    expect(monthBack(2, new Date("2026-01-15T00:00:00Z"))).toBe("2025-11");
    expect(listed(["a", "b", "c", "d"], 2)).toBe("a, b and 2 more");
  });
  it("write invisible characters out and shorten URNs", () => {
    expect(visible("a\u202egnp.exe")).toBe("a⟨U+202E⟩gnp.exe");
    expect(visible("<script>café🦊")).toBe("<script>café🦊");
    expect(withNames("needs discount in PROJECTION")).toBe("needs discount in SELECT");
    expect(withNames("Dropping a of lumos://s3/lake/raw/orders: 4 break, see lumos://s3/x/y.")).toBe("Dropping a of orders: 4 break, see y.");
  });
  it("find the worst verdict", () => {
    expect(worst(["informational", "compatible", "undetermined"])).toBe("undetermined");
    expect(worst([])).toBe("informational");
  });
});

describe("events", () => {
  it("are complete when an empty line follows", () => {
    const { events, rest } = parseEvents("event: log\ndata: {\"a\":1}\n\n: waiting\n\nevent: job\ndata: x\ndata: y\n\nevent: lo");
    expect(events).toEqual([{ event: "log", data: "{\"a\":1}" }, { event: "job", data: "x\ny" }]);
    expect(rest).toBe("event: lo");
  });
});
