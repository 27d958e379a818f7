/** Lineage of a dataset: hops, one column's whole path, how columns are used and where. */
import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import * as ask from "../api/queries";
import { formatNumber, plural, shortName } from "../ui/format";
import { DatasetLink, Empty, Loading, Owners, Problem, Segmented, When } from "../ui/parts";
import { download, pngOf } from "./export";
import { type Arrow, Graph } from "./graph";
import { type Direction, hopKey, visibleGraph } from "./hops";

const route = getRouteApi("/lineage");
const MOST = 5000;
// Larger graphs start with few hops, and without columns.
const COLLAPSED_BEYOND = 300;
const NEAR = 2;
const NOTHING_CHANGED: ReadonlyMap<string, boolean> = new Map();
type Side = "both" | "upstream" | "downstream";

export function LineagePage() {
  const search = route.useSearch();
  return search.urn === undefined ? <Choose /> : <Explore urn={search.urn} />;
}

function Choose() {
  const top = useQuery(ask.datasets({ limit: 200 }));
  return (
    <div className="page">
      <header><h1>Lineage</h1><p className="muted">Choose a dataset, or search for one and open its lineage.</p></header>
      <section className="panel">
        {top.isError ? <Problem error={top.error} /> : null}
        {top.data === undefined ? <Loading /> : top.data.datasets.length === 0 ? <Empty command="lumos lineage ingest PATH">The store is empty.</Empty> : (
          <table>
            <thead><tr><th>Dataset</th><th className="optional">Platform</th><th>Changed</th></tr></thead>
            <tbody>
              {top.data.datasets.map((each) => (
                <tr key={each.urn}>
                  <td><Link to="/lineage" search={{ urn: each.urn }}><bdi className="name">{each.name}</bdi></Link></td>
                  <td className="muted optional">{each.platform}</td>
                  <td className="muted"><When at={each.updated_at} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
    </div>
  );
}

function Explore({ urn }: { urn: string }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const side = (["upstream", "downstream"].includes(search.side ?? "") ? search.side : "both") as Side;
  const lineage = useQuery(ask.lineage({ dataset: urn, side, limit: MOST }));
  const [changed, setChanged] = useState<ReadonlyMap<string, boolean>>(NOTHING_CHANGED);
  const [arrow, setArrow] = useState<Arrow>();
  const [find, setFind] = useState("");
  const [expanded, setExpanded] = useState<boolean>();
  const draw = useRef<() => string>(undefined);
  const onDraw = useCallback((drawing: () => string) => { draw.current = drawing; }, []);
  const save = async (kind: "svg" | "png") => {
    const svg = draw.current?.();
    if (svg === undefined) return;
    const blob = kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await pngOf(svg);
    download(blob, `lineage-${shortName(urn).replace(/[^\w.-]+/g, "_")}.${kind}`);
  };
  const set = useCallback((values: Record<string, string | undefined>) => {
    void navigate({ to: "/lineage", search: { ...search, ...values }, replace: true });
  }, [navigate, search]);
  const parts = useMemo(() => {
    const split = search.column?.split("\n") ?? [];
    const [owner, name] = split.length === 2 ? split : [urn, split[0]];
    return name === undefined || owner === undefined ? undefined : { urn: owner, name };
  }, [search.column, urn]);
  const onColumn = useCallback((owner: string, name: string) => {
    const value = owner === urn ? name : `${owner}\n${name}`;
    set({ column: value === search.column ? undefined : value });
  }, [set, search.column, urn]);
  const onOpen = useCallback((other: string) => { void navigate({ to: "/dataset", search: { urn: other } }); }, [navigate]);
  const report = lineage.data;
  // Large graphs begin with what is near; people expand the rest hop by hop.
  const size = report?.nodes.length ?? 0;
  const hops = search.depth === undefined ? (size > COLLAPSED_BEYOND ? NEAR : Infinity) : search.depth === "all" ? Infinity : Number(search.depth);
  useEffect(() => { setChanged(NOTHING_CHANGED); }, [urn, side, hops]);
  const graph = useMemo(() => (report === undefined ? undefined : visibleGraph(report.edges, report.urn, hops, changed)), [report, hops, changed]);
  const boxes = useMemo(() => (report?.nodes ?? []).filter((each) => graph?.urns.has(each.urn) === true), [report, graph]);
  const arrows = useMemo(() => (report?.edges ?? []).filter((each) => graph?.urns.has(each.upstream) === true && graph.urns.has(each.downstream)), [report, graph]);
  const onHop = useCallback((other: string, direction: Direction, open: boolean) => {
    setChanged((before) => new Map([...before, [hopKey(other, direction), open]]));
  }, []);
  const matches = report === undefined || find === "" ? [] : report.nodes.filter((each) => each.name.toLowerCase().includes(find.toLowerCase()) || (each.columns ?? []).some((column) => column.toLowerCase().includes(find.toLowerCase()))).slice(0, 8);
  const collapsed = !(expanded ?? boxes.length <= COLLAPSED_BEYOND);
  return (
    <div className="page wide">
      <header className="row spread wrap">
        <div className="grow" style={{ flexBasis: 220 }}>
          <h1>Lineage of <DatasetLink urn={urn} name={report?.nodes.find((each) => each.urn === report.urn)?.name ?? shortName(urn)} /></h1>
          <p className="small muted">
            {report === undefined ? "…" : `${boxes.length < size ? `${formatNumber(boxes.length)} of ` : ""}${plural(size, "dataset")}${report.truncated ? ` (${formatNumber(report.total)} in all)` : ""}, ${plural(arrows.length, "edge")}`}
            {parts === undefined ? ". Click a column to follow it, an edge to see how columns are used; double-click a dataset to open it." : <>. Following <code><bdi>{parts.name}</bdi></code> of <bdi>{shortName(parts.urn)}</bdi> <button type="button" className="link" onClick={() => { set({ column: undefined }); }}>Show all</button></>}
          </p>
        </div>
        <div className="row wrap">
          <div className="finder">
            <input type="search" aria-label="Find in the graph" placeholder="Find in the graph" value={find} onChange={(event) => { setFind(event.target.value); }} />
            {matches.length === 0 ? null : (
              <div className="drawer" style={{ right: "auto", left: 0, top: 36, width: 260, padding: 4, maxHeight: 260 }}>
                {matches.map((each) => (
                  <button key={each.urn} type="button" className="link" style={{ display: "block", padding: "4px 8px" }} onClick={() => { setFind(""); void navigate({ to: "/lineage", search: { ...search, urn: each.urn, column: undefined } }); }}><bdi>{each.name}</bdi></button>
                ))}
              </div>
            )}
          </div>
          <Segmented label="Direction" value={side} options={[["upstream", "Upstream"], ["both", "Both"], ["downstream", "Downstream"]]} onChange={(value) => { set({ side: value === "both" ? undefined : value }); }} />
          <select aria-label="Hops" value={hops === Infinity ? "all" : String(hops)} onChange={(event) => { set({ depth: event.target.value }); }}>
            <option value="all">All hops</option>
            {[...new Set([1, 2, 3, 5, hops])].filter(Number.isFinite).sort((one, two) => one - two).map((each) => <option key={each} value={each}>{plural(each, "hop")}</option>)}
          </select>
          <button type="button" className="button" onClick={() => { setExpanded(collapsed); }}>{collapsed ? "Show columns" : "Hide columns"}</button>
          <button type="button" className="button" title="Save the graph as SVG" onClick={() => { void save("svg"); }}>SVG</button>
          <button type="button" className="button" title="Save the graph as PNG" onClick={() => { void save("png"); }}>PNG</button>
        </div>
      </header>
      <div className="graph">
        {lineage.isError ? <div style={{ padding: 14 }}><Problem error={lineage.error} /></div> : null}
        {report === undefined ? (lineage.isError ? null : <Loading />) : report.nodes.length === 0
          ? <Empty command="lumos lineage ingest PATH">No lineage is known for this dataset.</Empty>
          : <Graph boxes={boxes} arrows={arrows} hops={graph?.hops} onHop={onHop} focus={report.urn} column={parts} collapsed={collapsed} onColumn={onColumn} onOpen={onOpen} onArrow={setArrow} onDraw={onDraw} />}
        {arrow === undefined ? null : <ArrowDetails arrow={arrow} onClose={() => { setArrow(undefined); }} />}
      </div>
    </div>
  );
}

function ArrowDetails({ arrow, onClose }: { arrow: Arrow; onClose: () => void }) {
  return (
    <aside className="drawer" aria-label="Edge">
      <div className="row spread">
        <b><DatasetLink urn={arrow.upstream} /> → <DatasetLink urn={arrow.downstream} /></b>
        <button type="button" className="link" aria-label="Close" onClick={onClose}>Close</button>
      </div>
      <p className="small muted">{(arrow.type ?? "transformed").toLowerCase()}, reported by <Owners names={arrow.origins ?? []} />{(arrow.confidence ?? 1) < 1 ? `, confidence ${Math.round((arrow.confidence ?? 1) * 100)}%` : ""}</p>
      {(arrow.columns ?? []).map((each, index) => (
        <div key={index} style={{ marginTop: 8 }}>
          <code><bdi>{each.upstream}</bdi></code> → <code><bdi>{each.downstream}</bdi></code>
          {each.derivation ? <span className="small faint"> {each.derivation.toLowerCase()}</span> : null}
          {each.transformation ? <div className="sql">{each.transformation}</div> : null}
          {each.file ? <div className="small faint">{each.file}{each.line ? `:${each.line}` : ""}</div> : null}
        </div>
      ))}
      {(arrow.uses ?? []).map((each, index) => (
        <div key={`u${index}`} style={{ marginTop: 8 }}>
          <code><bdi>{each.upstream}</bdi></code> <span className="small faint">used in {each.usage.toLowerCase().replaceAll("_", " ")}</span>
          {each.expression ? <div className="sql">{each.expression}</div> : null}
          {each.file ? <div className="small faint">{each.file}{each.line ? `:${each.line}` : ""}</div> : null}
        </div>
      ))}
    </aside>
  );
}
