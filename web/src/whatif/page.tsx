/** What if: a changed schema and who breaks, or datasets switched off and what is saved. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import type { Schemas } from "../api/client";
import { useFeature } from "../api/features";
import * as ask from "../api/queries";
import { Graph } from "../lineage/graph";
import { amount, formatMoney, plural, shortName, withNames } from "../ui/format";
import { allPaths, schemaRows } from "../dataset/rules";
import { typeHead } from "../dataset/types";
import { DatasetLink, Empty, Loaded, Owners, Panel, Problem, Tag, Verdict } from "../ui/parts";

const route = getRouteApi("/what-if");

// As the server expects them: "old -> new" and "column:TYPE".
const SEPARATORS = { rename: " -> ", change: ":" } as const;

interface Proposal {
  urn?: string;
  drop?: string[];
  rename?: string[];
  change?: string[];
  off?: string[];
}

export function WhatIfPage() {
  const search = route.useSearch() as Proposal;
  const navigate = useNavigate();
  const set = useCallback((values: Proposal) => {
    void navigate({ to: "/what-if", search: { ...search, ...values }, replace: true });
  }, [navigate, search]);
  const priced = useQuery(ask.hasPrices());
  if (!useFeature("impact")) return <div className="page"><Empty>What-if questions need a server: lumos serve</Empty></div>;
  return (
    <div className="page">
      <header>
        <h1>What-if</h1>
        <p className="muted">Change, rename or drop columns and see who breaks{priced.data === true ? ", or switch datasets off and see what is saved" : ""}. Share the address: it computes the answer again.</p>
      </header>
      <div className="grid">
        <ChangeSchema search={search} set={set} />
        {priced.data === true ? <SwitchOff off={search.off ?? []} set={set} /> : null}
      </div>
    </div>
  );
}

function PickDataset({ label, suggest = true, onPick }: { label: string; suggest?: boolean; onPick: (urn: string) => void }) {
  const [text, setText] = useState("");
  const found = useQuery({ ...ask.search({ text, limit: 8 }), enabled: text.trim() !== "" });
  const all = useQuery({ ...ask.datasets({ limit: 8 }), enabled: text.trim() === "" });
  const hits = text.trim() === "" ? (all.data?.datasets ?? []) : (found.data?.results ?? []);
  return (
    <div className="stack" style={{ maxWidth: 420 }}>
      <input type="search" aria-label={label} placeholder={label} value={text} onChange={(event) => { setText(event.target.value); }} />
      <div className="row wrap" style={{ gap: 5 }}>
        {(text.trim() === "" && !suggest ? [] : hits).map((each) => <button key={each.urn} type="button" className="button small" title={each.urn} onClick={() => { setText(""); onPick(each.urn); }}><bdi className="clip" style={{ maxWidth: 220 }}>{each.name}</bdi></button>)}
        {text !== "" && found.data !== undefined && hits.length === 0 ? <span className="small muted">No dataset matches.</span> : null}
      </div>
    </div>
  );
}

function ChangeSchema({ search, set }: { search: Proposal; set: (values: Proposal) => void }) {
  const { urn, drop = [], rename = [], change = [] } = search;
  const shown = useQuery({ ...ask.dataset(urn ?? ""), enabled: urn !== undefined });
  const asked = drop.length + rename.length + change.length > 0;
  const impact = useQuery({ ...ask.impact({ dataset: urn ?? "", drop, rename, change }), enabled: urn !== undefined && asked });
  if (urn === undefined) {
    return <Panel title="Change a schema" flush={false}><PickDataset label="Choose a dataset to change" onPick={(value) => { set({ urn: value }); }} /></Panel>;
  }
  return (
    <>
      <div className="columns" style={{ gridTemplateColumns: undefined }}>
        <Panel title={<>Change <DatasetLink urn={urn} name={shown.data?.dataset.name} /></>} aside={<span className="row">{asked ? <button type="button" className="link" onClick={() => { set({ drop: undefined, rename: undefined, change: undefined }); }}>Undo all</button> : null}<button type="button" className="link" onClick={() => { set({ urn: undefined, drop: undefined, rename: undefined, change: undefined }); }}>Another dataset</button></span>}>
          <Loaded query={shown}>
            {({ dataset }) => <Columns fields={dataset.schema?.fields ?? []} drop={drop} rename={rename} change={change} set={set} />}
          </Loaded>
        </Panel>
        <Panel title="Verdict">
          {!asked ? <Empty>Drop, rename or change a column to see who breaks.</Empty> : (
            <Loaded query={impact}>{(report) => <Summary report={report} />}</Loaded>
          )}
        </Panel>
      </div>
      {asked && impact.data !== undefined ? <><ImpactGraph urn={impact.data.change.urn} report={impact.data} /><Affected report={impact.data} /></> : null}
    </>
  );
}

function Columns({ fields, drop, rename, change, set }: { fields: readonly Schemas["FieldReport"][]; drop: string[]; rename: string[]; change: string[]; set: (values: Proposal) => void }) {
  const [editing, setEditing] = useState<{ name: string; kind: "rename" | "change"; text: string }>();
  const rows = useMemo(() => schemaRows(fields, allPaths(fields)), [fields]);
  if (fields.length === 0) return <Empty>No schema is known for this dataset.</Empty>;
  const without = (list: string[], name: string, separator: string) => list.filter((each) => !each.startsWith(`${name}${separator}`));
  const clear = (name: string): Proposal => ({
    drop: orNone(drop.filter((each) => each !== name)),
    rename: orNone(without(rename, name, SEPARATORS.rename)),
    change: orNone(without(change, name, SEPARATORS.change)),
  });
  return (
    <div className="scroll" tabIndex={0} style={{ maxHeight: 420, overflowY: "auto" }}>
      <table className="edited">
        <tbody>
          {rows.map(({ node, depth }) => {
            const dropped = drop.includes(node.path);
            const renamed = valueIn(rename, node.path, SEPARATORS.rename);
            const changed = valueIn(change, node.path, SEPARATORS.change);
            const isEditing = editing?.name === node.path;
            // Items of arrays, keys and values of maps have no name of their own.
            const canChange = depth === 0 || node.path.endsWith(`.${node.name}`);
            return (
              <tr key={node.path}>
                <td style={{ paddingLeft: 14 + depth * 18 }}><code className={dropped || renamed !== undefined ? "name was" : "name"}><bdi>{node.name}</bdi></code>{renamed === undefined ? null : <> <code className="now">{renamed}</code></>}</td>
                <td className="type"><span className={changed === undefined ? "" : "was"}>{typeHead(node.type)}</span>{changed === undefined ? null : <> <span className="now">{changed}</span></>}</td>
                <td className="nowrap" style={{ textAlign: "right" }}>
                  {isEditing ? (
                    <form className="row" onSubmit={(event) => {
                      event.preventDefault();
                      const text = editing.text.trim();
                      if (text !== "") {
                        const base = clear(node.path);
                        set({ ...base, [editing.kind]: [...(base[editing.kind] ?? []), `${node.path}${SEPARATORS[editing.kind]}${text}`] });
                      }
                      setEditing(undefined);
                    }}>
                      <input type="text" autoFocus aria-label={editing.kind === "rename" ? `New name of ${node.path}` : `New type of ${node.path}`} value={editing.text} placeholder={editing.kind === "rename" ? "new name" : "new type, as INT64"} style={{ width: 130, minHeight: 26, padding: "1px 8px" }} onChange={(event) => { setEditing({ ...editing, text: event.target.value }); }} onKeyDown={(event) => { if (event.key === "Escape") setEditing(undefined); }} />
                      <button type="submit" className="button small">Apply</button>
                    </form>
                  ) : dropped || renamed !== undefined || changed !== undefined
                    ? <button type="button" className="link small" onClick={() => { set(clear(node.path)); }}>Undo</button>
                    : !canChange ? null : (
                      <span className="row" style={{ justifyContent: "flex-end", gap: 12 }}>
                        <button type="button" className="link small" aria-label={`Drop ${node.path}`} onClick={() => { set({ drop: [...drop, node.path] }); }}>Drop</button>
                        <button type="button" className="link small" aria-label={`Rename ${node.path}`} onClick={() => { setEditing({ name: node.path, kind: "rename", text: "" }); }}>Rename</button>
                        <button type="button" className="link small" aria-label={`Change the type of ${node.path}`} onClick={() => { setEditing({ name: node.path, kind: "change", text: "" }); }}>Type</button>
                      </span>
                    )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function valueIn(list: readonly string[], name: string, separator: string): string | undefined {
  return list.find((each) => each.startsWith(name + separator))?.slice(name.length + separator.length);
}

function orNone(list: string[]): string[] | undefined {
  return list.length === 0 ? undefined : list;
}

function Summary({ report }: { report: Schemas["ImpactReport"] }) {
  const priced = useQuery(ask.hasPrices());
  const costs = useQuery({ ...ask.costTop({ limit: 1000, ranked_by: "total" }), enabled: priced.data === true });
  const broken = new Set(report.downstream.filter((each) => each.verdict === "BREAKING").map((each) => each.urn));
  const price = (costs.data?.datasets ?? []).filter((each) => broken.has(each.urn)).reduce((sum, each) => sum + amount(each.own), 0);
  return (
    <div className="body stack">
      <p style={{ fontSize: "1.1rem", fontWeight: 560 }}>{withNames(report.headline)}</p>
      {costs.data !== undefined && broken.size > 0 ? <p className="muted small">Running the broken datasets costs {formatMoney(price, costs.data.currency)} a month, which buys nothing while they are broken.</p> : null}
      {report.coverage < 1 ? <p className="muted small">{Math.round(report.coverage * 100)}% of what is downstream could be judged.</p> : null}
      {report.recommendations.map((each) => <p key={each} className="muted small">{withNames(each)}</p>)}
    </div>
  );
}

function Affected({ report }: { report: Schemas["ImpactReport"] }) {
  const affected = report.downstream.filter((each) => each.verdict !== "COMPATIBLE" || each.affected);
  if (affected.length === 0) return null;
  return (
    <Panel title="Who is affected" aside={plural(affected.length, "dataset")}>
      <div className="scroll" tabIndex={0}>
        <table>
          <thead><tr><th>Verdict</th><th>Dataset</th><th className="optional">Owner</th><th>Why</th></tr></thead>
          <tbody>
            {affected.map((each) => (
              <tr key={each.urn}>
                <td><Verdict of={each.verdict} /></td>
                <td><DatasetLink urn={each.urn} /><div className="small muted narrow"><Owners names={each.owners} /></div></td>
                <td className="muted optional"><Owners names={each.owners} /></td>
                <td style={{ width: "60%" }}>
                  {each.reasons.slice(0, 3).map((reason, index) => (
                    <div key={index} className="small">
                      <span className="muted">{withNames(reason.text)}</span>{reason.file ? <code className="faint"> {reason.file}{reason.line ? `:${reason.line}` : ""}</code> : null}
                      {reason.clause ? <div className="sql">{reason.clause}</div> : null}
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function ImpactGraph({ urn, report }: { urn: string; report: Schemas["ImpactReport"] }) {
  const lineage = useQuery(ask.lineage({ dataset: urn, side: "downstream", limit: 500 }));
  const navigate = useNavigate();
  const verdicts = useMemo(
    () => new Map(report.downstream.filter((each) => each.affected || each.verdict !== "COMPATIBLE").map((each) => [each.urn, each.verdict.toLowerCase()])),
    [report],
  );
  const onOpen = useCallback((other: string) => { void navigate({ to: "/dataset", search: { urn: other } }); }, [navigate]);
  const onColumn = useCallback((other: string, column: string) => { void navigate({ to: "/lineage", search: { urn: other, column } }); }, [navigate]);
  if (lineage.isError) return <Problem error={lineage.error} />;
  if (lineage.data === undefined || lineage.data.nodes.length < 2) return null;
  return (
    <div className="graph" style={{ height: 440 }}>
      <Graph boxes={lineage.data.nodes} arrows={lineage.data.edges} focus={urn} verdicts={verdicts} collapsed={lineage.data.nodes.length > 60} onColumn={onColumn} onOpen={onOpen} />
    </div>
  );
}

function SwitchOff({ off, set }: { off: string[]; set: (values: Proposal) => void }) {
  const savings = useQuery(ask.savings(off));
  return (
    <Panel title="Switch datasets off" flush={false}>
      <div className="stack" style={{ gap: 12 }}>
        {off.length === 0 ? null : <div className="row wrap" style={{ gap: 5 }}>{off.map((urn) => <Tag key={urn} name={shortName(urn)} onRemove={() => { set({ off: orNone(off.filter((each) => each !== urn)) }); }} />)}</div>}
        <PickDataset label="Choose a dataset to switch off" suggest={off.length === 0} onPick={(urn) => { set({ off: [...new Set([...off, urn])] }); }} />
        {off.length === 0 ? null : (
          <Loaded query={savings}>
            {(report) => {
              const money = (value: unknown) => formatMoney(value, report.currency);
              return (
                <div className="stack" style={{ gap: 12 }}>
                  <p style={{ fontSize: "1.1rem", fontWeight: 560 }}>
                    Saves {money(report.monthly_savings)} a month, {money(report.annual_savings)} a year{report.broken.length === 0 ? ", and nothing else breaks." : `, and breaks ${plural(report.broken.length, "dataset")}.`}
                  </p>
                  <div className="grid" style={{ gridTemplateColumns: "repeat(auto-fit, minmax(260px, 1fr))" }}>
                    <div><h3>No longer computed</h3><table className="plain"><tbody>{report.disappears.slice(0, 12).map((each) => <tr key={each.urn}><td><DatasetLink urn={each.urn} name={each.name} /></td><td className="muted">{each.team}</td><td className="num">{money(each.monthly)}</td></tr>)}</tbody></table></div>
                    {report.broken.length === 0 ? null : <div><h3>Breaks</h3><table className="plain"><tbody>{report.broken.slice(0, 12).map((each) => <tr key={each.urn}><td><Verdict of="breaking" /></td><td><DatasetLink urn={each.urn} name={each.name} /></td><td className="muted"><Owners names={each.owners} /></td></tr>)}</tbody></table></div>}
                    {report.stays.length === 0 ? null : <div><h3>Upstream that others still need</h3><table className="plain"><tbody>{report.stays.slice(0, 8).map((each) => <tr key={each.urn}><td><DatasetLink urn={each.urn} name={each.name} /></td><td className="small muted">{withNames(each.reason)}</td><td className="num">{money(each.monthly)}</td></tr>)}</tbody></table></div>}
                  </div>
                  <p className="small muted">Risk {report.impact_analysis.risk_level.toLowerCase()}: {withNames(report.impact_analysis.reasons.join("; "))}</p>
                </div>
              );
            }}
          </Loaded>
        )}
      </div>
    </Panel>
  );
}
