/** Everything about one dataset. */
import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { Fragment, useEffect, useMemo, useState } from "react";
import { useFeature } from "../api/features";
import * as ask from "../api/queries";
import type { DatasetEntry } from "../api/dataset";
import { searchEnds } from "../home/timing";
import { Bars } from "../ui/charts";
import { formatBytes, formatCount, formatMoney, formatNumber, formatPercent, formatTime, plural, visible } from "../ui/format";
import { ChangeText, DatasetLink, Empty, Loaded, Panel, Problem, Tabs, Tag, Verdict, When } from "../ui/parts";
import { CostTrend } from "../cost/trend";
import { distribution } from "./distribution";
import { EditDescription, EditOwners, EditTags, useCanEdit } from "./edit";
import { PartitionsPanel } from "./partitions";
import { Distribution, NullShare, ProfileTab } from "./profile";
import { allPaths, annotationText, compareVersions, schemaRows, worst } from "./rules";
import { typeHead } from "./types";

const route = getRouteApi("/dataset");
type Tab = "schema" | "history" | "profile" | "usage" | "cost" | "files" | "annotations";

export function DatasetPage() {
  const { urn, tab, from, to } = route.useSearch();
  const navigate = useNavigate();
  const shown = useQuery({ ...ask.dataset(urn), enabled: urn !== "" });
  const priced = useQuery({ ...ask.hasPrices(), enabled: useFeature("cost_attribution") });
  const hasUsage = useFeature("usage");
  const hasHistory = useFeature("schema_tracking");
  const isShown = shown.data !== undefined;
  const canEdit = useCanEdit() && shown.data?.state !== "assumed";
  useEffect(() => { if (isShown) searchEnds(); }, [isShown, urn]);
  if (urn === "") return <div className="page"><Empty>No dataset is named in the address. <Link to="/search" search={{}}><b>Search for one</b></Link></Empty></div>;
  if (shown.isError) return <div className="page"><Problem error={shown.error} /></div>;
  if (shown.data === undefined) return <div className="page"><Loaded query={shown}>{() => null}</Loaded></div>;
  const { dataset, state, etag } = shown.data;
  const tabs: (readonly [Tab, string])[] = [["schema", "Schema"]];
  if (dataset.versioning && hasHistory) tabs.push(["history", "History"]);
  if (dataset.quality?.profile) tabs.push(["profile", "Profile"]);
  if (state !== "assumed" && hasUsage) tabs.push(["usage", "Usage"]);
  if (priced.data === true && state !== "assumed") tabs.push(["cost", "Cost"]);
  if (dataset.location || (dataset.drift ?? []).length > 0) tabs.push(["files", (dataset.drift ?? []).length > 0 ? "Files and drift" : "Files"]);
  if (state !== "assumed") tabs.push(["annotations", "Annotations"]);
  const current = tabs.some(([key]) => key === tab) ? (tab as Tab) : "schema";
  return (
    <div className="page">
      <Head dataset={dataset} state={state} etag={etag} canEdit={canEdit} />
      <Tabs label="Parts of the dataset" value={current} options={tabs} onChange={(key) => { void navigate({ to: "/dataset", search: { urn, tab: key }, replace: true }); }} />
      {current === "schema" ? <SchemaTab dataset={dataset} etag={etag} canEdit={canEdit} /> : null}
      {current === "history" ? <HistoryTab urn={urn} from={from} to={to} /> : null}
      {current === "profile" && dataset.quality?.profile ? <ProfileTab profile={dataset.quality.profile} /> : null}
      {current === "usage" ? <UsageTab urn={urn} /> : null}
      {current === "cost" ? <CostTab urn={urn} /> : null}
      {current === "files" ? <FilesTab dataset={dataset} /> : null}
      {current === "annotations" ? <AnnotationsTab urn={urn} /> : null}
    </div>
  );
}

function Head({ dataset, state, etag, canEdit }: { dataset: DatasetEntry; state: string; etag: string | null; canEdit: boolean }) {
  const hasLineage = useFeature("lineage");
  const hasImpact = useFeature("impact");
  const statistics = dataset.statistics;
  return (
    <header className="stack" style={{ gap: 10 }}>
      <div className="row spread wrap" style={{ alignItems: "flex-start" }}>
        <div className="grow" style={{ flexBasis: 320 }}>
          <h1><bdi className="name">{visible(dataset.name)}</bdi></h1>
          <div className="small faint mono wrap"><bdi>{dataset.location?.uri ?? dataset.urn}</bdi></div>
        </div>
        <div className="row">
          {hasLineage ? <Link className="button" to="/lineage" search={{ urn: dataset.urn }}>Lineage</Link> : null}
          {dataset.schema && hasImpact ? <Link className="button" to="/what-if" search={{ urn: dataset.urn }}>What-if</Link> : null}
        </div>
      </div>
      {state === "live" ? null : (
        <div className="row wrap">
          <Verdict of={state === "assumed" ? "informational" : "undetermined"} label={state} />
          <span className="small muted">{state === "assumed" ? "Known from lineage only: no scan has found it." : "No longer found by scans."}</span>
        </div>
      )}
      <EditDescription urn={dataset.urn} etag={etag} description={dataset.documentation?.description ?? null} canEdit={canEdit} />
      <div className="row wrap" style={{ gap: "4px 22px" }}>
        <Fact label="Owner"><EditOwners urn={dataset.urn} etag={etag} owners={dataset.ownership?.owners ?? []} canEdit={canEdit} /></Fact>
        {dataset.documentation?.domain ? <Fact label="Domain"><bdi>{dataset.documentation.domain}</bdi></Fact> : null}
        <Fact label="Platform">{[dataset.platform, dataset.format].filter(Boolean).join(", ")}</Fact>
        {dataset.versioning ? <Fact label="Version"><span className="mono">{dataset.versioning.schema_version}</span> <span className="faint mono" title="Cloud version: raised by each change of data, schema or metadata">{dataset.versioning.cloud_version}</span></Fact> : null}
        {statistics?.row_count === null || statistics?.row_count === undefined ? null : <Fact label="Rows">{formatCount(statistics.row_count)}</Fact>}
        {statistics ? <Fact label="Size">{formatBytes(statistics.total_size_bytes)}</Fact> : null}
        {statistics?.last_modified ? <Fact label="Data from"><When at={statistics.last_modified} /></Fact> : null}
        <EditTags urn={dataset.urn} etag={etag} tags={dataset.governance?.tags ?? []} terms={dataset.governance?.terms ?? []} compliance={dataset.governance?.compliance ?? []} canEdit={canEdit} />
      </div>
      {(dataset.flags ?? []).map((flag) => <div key={flag} className="small muted">{flag}</div>)}
    </header>
  );
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return <span><span className="faint small">{label} </span>{children}</span>;
}

function SchemaTab({ dataset, etag, canEdit }: { dataset: DatasetEntry; etag: string | null; canEdit: boolean }) {
  const fields = useMemo(() => dataset.schema?.fields ?? [], [dataset.schema]);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => (fields.length <= 40 ? allPaths(fields) : new Set()));
  const [filter, setFilter] = useState("");
  const [edited, setEdited] = useState<string>();
  const rows = useMemo(() => {
    const wanted = filter.toLowerCase();
    return schemaRows(fields, open).filter(({ node }) => wanted === "" || node.path.toLowerCase().includes(wanted));
  }, [fields, open, filter]);
  if (fields.length === 0) return <Panel><Empty>No schema is known for this dataset.</Empty></Panel>;
  const rowCount = dataset.statistics?.row_count ?? null;
  const columns = dataset.statistics?.columns ?? {};
  const profile = dataset.quality?.profile ?? null;
  const profiled = profile?.columns ?? {};
  const hasNulls = profile !== null || (rowCount !== null && Object.values(columns).some((each) => each.null_count !== null && each.null_count !== undefined));
  const hasDistributions = Object.values(profiled).some((each) => distribution(each).length > 0);
  const hasTexts = fields.some((each) => (each.description ?? "") !== "" || (each.terms ?? []).length > 0 || (each.nested ?? []).some((one) => (one.description ?? "") !== "" || (one.terms ?? []).length > 0));
  const toggle = (path: string) => {
    setOpen((before) => {
      const after = new Set(before);
      if (!after.delete(path)) after.add(path);
      return after;
    });
  };
  return (
    <Panel
      title={plural(fields.length, "column")}
      aside={<input type="search" aria-label="Filter columns" placeholder="Filter columns" value={filter} onChange={(event) => { setFilter(event.target.value); }} style={{ minHeight: 26, padding: "1px 8px" }} />}
    >
      <div className="scroll" tabIndex={0}>
        <table className="tree">
          <thead><tr><th>Column</th><th>Type</th>{hasNulls ? <th className="optional">Null</th> : null}{hasDistributions ? <th className="optional">Distribution</th> : null}{hasTexts ? <th className="described">Description</th> : null}{canEdit ? <th><span className="visually-hidden">Edit</span></th> : null}</tr></thead>
          <tbody>
            {rows.map(({ node, depth, field, nested }) => {
              // Footers know all rows; a profile may have read a sample.
              const counted = columns[node.path]?.null_count;
              const measured = profiled[node.path];
              const [nulls, rowsOf] = counted !== null && counted !== undefined && rowCount !== null ? [counted, rowCount] : [measured?.nulls ?? null, profile?.rows ?? 0];
              const tags = field?.tags ?? nested?.tags ?? [];
              const terms = field?.terms ?? nested?.terms ?? [];
              const description = field?.description ?? nested?.description ?? null;
              const isEdited = canEdit && edited === node.path;
              return (
                <Fragment key={node.path}>
                <tr className={isEdited ? "edited" : undefined}>
                  <td>
                    <span className="field" style={{ paddingLeft: depth * 18 }}>
                      {node.children.length > 0
                        ? <button type="button" className="twist" aria-expanded={open.has(node.path)} aria-label={`${open.has(node.path) ? "Close" : "Open"} ${node.path}`} onClick={() => { toggle(node.path); }}>{open.has(node.path) ? "▼" : "▶"}</button>
                        : <span className="twist" />}
                      <code className="name"><bdi>{node.name}</bdi></code>
                      {field?.key === true ? <span className="tag" title="Part of the key">key</span> : null}
                      {field?.partition === true ? <span className="tag" title="Partition column">partition</span> : null}
                      {tags.map((tag) => <Tag key={tag} name={tag} />)}
                    </span>
                  </td>
                  <td><span className="type">{typeHead(node.type)}</span>{node.nullable ? null : <span className="small faint"> not null</span>}</td>
                  {hasNulls ? <td className="small nowrap optional">{nulls === null || rowsOf === 0 ? "" : <NullShare nulls={nulls} rows={rowsOf} />}</td> : null}
                  {hasDistributions ? <td className="optional"><Distribution profile={measured} name={node.path} /></td> : null}
                  {hasTexts ? (
                    <td className="muted wrap">
                      <bdi>{description ?? ""}</bdi>
                      {terms.map((term) => <Tag key={term} name={term} />)}
                    </td>
                  ) : null}
                  {canEdit ? <td className="act"><button type="button" className="link small" aria-expanded={isEdited} aria-label={`Edit ${node.path}`} onClick={() => { setEdited(isEdited ? undefined : node.path); }}>{isEdited ? "Close" : "Edit"}</button></td> : null}
                </tr>
                {isEdited ? (
                  <tr className="editor">
                    <td colSpan={3 + [hasNulls, hasDistributions, hasTexts].filter(Boolean).length}>
                      <div className="stack" style={{ paddingLeft: depth * 18 + 20 }}>
                        <EditDescription urn={dataset.urn} field={node.path} etag={etag} description={description} canEdit />
                        <EditTags urn={dataset.urn} field={node.path} etag={etag} tags={tags} terms={terms} compliance={[]} canEdit />
                      </div>
                    </td>
                  </tr>
                ) : null}
                </Fragment>
              );
            })}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function HistoryTab({ urn, from, to }: { urn: string; from?: string; to?: string }) {
  const history = useQuery(ask.history(urn));
  const navigate = useNavigate();
  const choose = (side: "from" | "to", version: string) => {
    void navigate({ to: "/dataset", search: { urn, tab: "history", from, to, [side]: version }, replace: true });
  };
  return (
    <Loaded query={history}>
      {(report) => {
        const versions = [...report.versions].sort((one, two) => compareVersions(two.schema_version, one.schema_version));
        if (versions.length === 0) return <Panel><Empty>No version has been recorded.</Empty></Panel>;
        const newest = versions[0]?.schema_version ?? "";
        const after = to ?? newest;
        const before = from ?? versions[1]?.schema_version ?? newest;
        return (
          <div className={report.milestones.length === 0 ? "grid" : "columns"}>
            <div className="grid">
              {versions.length > 1 ? <Comparison urn={urn} before={before} after={after} versions={versions.map((each) => each.schema_version)} onChoose={choose} /> : null}
              <Panel title="Versions" aside={plural(versions.length, "version")}>
                <ul className="timeline">
                  {versions.map((each) => (
                    <li key={`${each.schema_version}${each.cloud_version}`}>
                      <span className={`dot ${each.breaking ? "breaking" : "compatible"}`} />
                      <b className="mono">{each.schema_version}</b>
                      <span className="small muted">{formatTime(each.timestamp)}</span>
                      <span className="stack" style={{ gap: 2 }}>
                        {each.changes.length === 0 ? <span className="muted">{each.summary}</span> : each.changes.slice(0, 12).map((change) => (
                          <ChangeText key={`${change.path}${change.kind}`} {...change} before={change.before} after={change.after} />
                        ))}
                        {each.affected && each.affected.datasets.length > 0 ? (
                          <span className="small muted">Affects {each.affected.datasets.slice(0, 5).map((one, index) => <span key={one.urn}>{index === 0 ? "" : ", "}<DatasetLink urn={one.urn} name={one.name} /></span>)}{each.affected.datasets.length > 5 ? ` and ${each.affected.datasets.length - 5} more` : ""}</span>
                        ) : null}
                      </span>
                      {each.changes.length === 0 ? <span /> : <Verdict of={each.breaking ? "breaking" : worst(each.changes.map((change) => change.consumer))} />}
                    </li>
                  ))}
                </ul>
              </Panel>
            </div>
            {report.milestones.length === 0 ? null : <Panel title="Milestones">
              <table>
                <tbody>
                  {report.milestones.slice(0, 30).map((each) => (
                    <tr key={`${each.timestamp}${each.cloud_version}`}>
                      <td className="small muted nowrap">{formatTime(each.timestamp)}</td>
                      <td className="small">{each.summary}</td>
                      <td className="small faint mono">{each.cloud_version}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Panel>}
          </div>
        );
      }}
    </Loaded>
  );
}

function Comparison({ urn, before, after, versions, onChoose }: { urn: string; before: string; after: string; versions: readonly string[]; onChoose: (side: "from" | "to", version: string) => void }) {
  const diff = useQuery(ask.diff(`${urn}@${before}`, `${urn}@${after}`));
  const select = (side: "from" | "to", value: string) => (
    <select aria-label={side === "from" ? "Older version" : "Newer version"} value={value} onChange={(event) => { onChoose(side, event.target.value); }}>
      {[...new Set(versions)].map((each) => <option key={each} value={each}>{each}</option>)}
    </select>
  );
  return (
    <Panel title="Compare versions" aside={<span className="row">{select("from", before)}<span>→</span>{select("to", after)}</span>}>
      <Loaded query={diff}>
        {(report) => {
          const changes = report.datasets.flatMap((each) => each.changes);
          if (changes.length === 0) return <Empty>These versions have the same schema.</Empty>;
          return (
            <div className="scroll" tabIndex={0}>
              <table className="dense">
                <thead><tr><th>Column</th><th>{before}</th><th>{after}</th><th>For queries</th><th>For stored data</th></tr></thead>
                <tbody>
                  {changes.map((each) => (
                    <tr key={`${each.path}${each.kind}`}>
                      <td><code className="name"><bdi>{each.path}</bdi></code><div className="small faint">{each.kind.replaceAll("_", " ")}</div></td>
                      <td>{each.before === null || each.before === undefined ? <span className="faint">–</span> : <code className="type was">{String(each.before)}</code>}</td>
                      <td>{each.after === null || each.after === undefined ? <span className="faint">–</span> : <code className="type now">{String(each.after)}</code>}</td>
                      <td><Verdict of={each.consumer} /></td>
                      <td><Verdict of={each.storage} /></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function UsageTab({ urn }: { urn: string }) {
  const usage = useQuery(ask.usage(urn));
  return (
    <Loaded query={usage}>
      {(report) => {
        if (report.known_since === null && report.reads === 0) return <Panel><Empty command="lumos usage ingest FILE">No query log covers this dataset.</Empty></Panel>;
        const days = [...report.days].sort((one, two) => one.day.localeCompare(two.day));
        const columns = Object.entries(report.columns).sort((one, two) => (two[1].reads ?? 0) - (one[1].reads ?? 0));
        const most = columns[0]?.[1].reads ?? 1;
        return (
          <div className="columns">
            <div className="grid">
              <Panel title="Reads per day" aside={`${plural(report.reads, "read")} by ${plural(report.readers.length, "reader")}`} flush={false}>
                <Bars points={days.map((each) => ({ label: each.day, value: each.reads, title: `${each.day}: ${plural(each.reads, "read")}` }))} format={(value) => formatCount(value)} label="Reads per day" />
              </Panel>
              <Panel title="Columns">
                <table>
                  <thead><tr><th>Column</th><th /><th className="num">Reads</th></tr></thead>
                  <tbody>
                    {columns.slice(0, 40).map(([name, each]) => (
                      <tr key={name}>
                        <td><code className="name"><bdi>{name}</bdi></code></td>
                        <td style={{ width: "45%" }}><div className="bar"><i style={{ width: `${(100 * (each.reads ?? 0)) / most}%` }} /></div></td>
                        <td className="num">{formatNumber(each.reads ?? 0)}</td>
                      </tr>
                    ))}
                    {(report.unread_columns ?? []).map((name) => (
                      <tr key={name}><td><code className="name faint"><bdi>{name}</bdi></code></td><td className="small faint">unread</td><td className="num faint">0</td></tr>
                    ))}
                  </tbody>
                </table>
              </Panel>
            </div>
            <Panel title="Readers">
              <table>
                <thead><tr><th>Reader</th><th className="num">Reads</th><th>Last read</th></tr></thead>
                <tbody>
                  {report.readers.map((each) => (
                    <tr key={each.name}><td><bdi className="name">{each.name}</bdi></td><td className="num">{formatNumber(each.reads ?? 0)}</td><td className="small"><When at={each.last_read} /></td></tr>
                  ))}
                </tbody>
              </table>
            </Panel>
          </div>
        );
      }}
    </Loaded>
  );
}

function CostTab({ urn }: { urn: string }) {
  const report = useQuery(ask.costReport(urn));
  const trend = useQuery(ask.costTrend(urn));
  return (
    <Loaded query={report}>
      {(cost) => {
        const money = (value: unknown) => formatMoney(value, cost.currency);
        const sum = cost.summary;
        return (
          <div className="columns">
            <div className="grid">
              <Panel title="Cost" aside={`${cost.first_day} to ${cost.last_day}`}>
                <div className="tiles">
                  {([["total", sum.total_cost], ["own", sum.direct_cost], ["from upstream", sum.attributed_cost], ["passed on", sum.passed_on_cost]] as const).map(([label, value]) => (
                    <div className="tile" key={label}><div className="value">{money(value)}</div><div className="small muted">{label}</div></div>
                  ))}
                </div>
              </Panel>
              <Panel title="Where it comes from" aside="this dataset and all upstream">
                {cost.breakdown.by_upstream.length === 0 ? <Empty>Nothing upstream has a cost.</Empty> : (
                  <div className="scroll" tabIndex={0}><table>
                    <thead><tr><th>Dataset or job</th><th className="optional">Team</th><th className="num optional">Its own cost</th><th className="num">Share in this total</th></tr></thead>
                    <tbody>
                      {cost.breakdown.by_upstream.slice(0, 25).map((each) => (
                        <tr key={each.urn}><td><DatasetLink urn={each.urn} name={each.name} />{each.urn === urn ? <span className="small faint"> this dataset</span> : null}</td><td className="muted optional">{each.team}</td><td className="num muted optional">{money(each.own_cost)}</td><td className="num">{money(each.cost)}</td></tr>
                      ))}
                    </tbody>
                  </table></div>
                )}
              </Panel>
              {(cost.remarks ?? []).map((each) => <p key={each} className="small muted">{each}</p>)}
            </div>
            <div className="grid">
              <Panel title="By month" flush={false} aside={cost.trends.vs_last_month === null || cost.trends.vs_last_month === undefined ? undefined : `${formatPercent(cost.trends.vs_last_month)} against last month`}>
                <Loaded query={trend}>
                  {(data) => <CostTrend report={data} height={150} />}
                </Loaded>
              </Panel>
              <Panel title="By type">
                <table><tbody>
                  {Object.entries(cost.breakdown.by_type).map(([type, value]) => <tr key={type}><td>{type}</td><td className="num">{money(value)}</td></tr>)}
                </tbody></table>
              </Panel>
              {cost.optimization.length === 0 ? null : <Panel title="Advice" flush={false}>{cost.optimization.map((each) => <p key={each}>{each}</p>)}</Panel>}
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}

function FilesTab({ dataset }: { dataset: DatasetEntry }) {
  const { location, statistics, drift = [] } = dataset;
  return (
    <div className="grid">
      {(location?.partition_keys.length ?? 0) > 0 ? <PartitionsPanel urn={dataset.urn} /> : null}
      {location ? (
        <Panel title="Location" flush={false}>
          <dl className="facts">
            <dt>Address</dt><dd className="mono"><bdi>{location.uri}</bdi></dd>
            {statistics ? <><dt>Files</dt><dd>{formatNumber(statistics.file_count)}</dd><dt>Size</dt><dd>{formatBytes(statistics.total_size_bytes)}{statistics.total_size_exact ? "" : " (estimated)"}</dd></> : null}
            {location.partition_keys.length > 0 ? <><dt>Partitioned by</dt><dd><code>{location.partition_keys.join(", ")}</code>{location.partitioning ? ` (${location.partitioning})` : ""}</dd></> : null}
          </dl>
        </Panel>
      ) : null}
      {drift.length === 0 ? null : (
        <Panel title="Drift" aside="files whose schema differs from the dataset’s">
          <div className="scroll" tabIndex={0}>
            <table className="dense">
              <thead><tr><th className="num">Files</th><th>Differences</th><th>Seen</th><th>Example</th></tr></thead>
              <tbody>
                {drift.map((each) => (
                  <tr key={each.shape}>
                    <td className="num">{formatNumber(each.file_count)}</td>
                    <td>{(each.differences ?? []).map((one) => <div key={one}><code>{one.replaceAll(" -> ", " → ")}</code></div>)}</td>
                    <td className="small muted"><When at={each.last_seen} /></td>
                    <td className="small mono wrap"><bdi>{each.examples?.[0] ?? ""}</bdi></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
      )}
    </div>
  );
}

function AnnotationsTab({ urn }: { urn: string }) {
  const annotations = useQuery(ask.annotations(urn));
  if (annotations.isError) return <Problem error={annotations.error} />;
  const rows = annotations.data?.words ?? [];
  return (
    <Panel title="Annotations and their sources" aside={rows.length === 0 ? undefined : plural(rows.length, "annotation")}>
      {rows.length === 0 ? <Empty command="lumos tag add DATASET TAG">Nobody has annotated this dataset.</Empty> : (
        <div className="scroll" tabIndex={0}>
          <table>
            <thead><tr><th>Kind</th><th>Column</th><th>Value</th><th>Source</th><th className="optional">When</th></tr></thead>
            <tbody>
              {rows.map((each, index) => (
                <tr key={index}>
                  <td>{each.slot.replaceAll("_", " ")}</td>
                  <td><code>{each.field === "" ? "" : each.field}</code></td>
                  <td className="wrap"><bdi>{annotationText(each.slot, each.name, each.value)}</bdi></td>
                  <td className="muted">{each.author ?? each.by ?? <span className="faint">an import</span>}</td>
                  <td className="small muted optional">{each.at === null || each.at === undefined ? "" : <When at={each.at} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
