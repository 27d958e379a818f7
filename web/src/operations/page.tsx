/** Jobs, schedules, releases, catalogs, gate results with their waivers, and the audit log. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { createColumnHelper, flexRender, getCoreRowModel, getSortedRowModel, useReactTable, type SortingState } from "@tanstack/react-table";
import { useEffect, useState } from "react";
import { api, type Schemas, unwrap } from "../api/client";
import { follow } from "../api/events";
import { useFeature } from "../api/features";
import * as ask from "../api/queries";
import { formatNumber, formatTime, plural, visible } from "../ui/format";
import { DatasetLink, Empty, Loaded, Panel, Problem, Tabs, When } from "../ui/parts";

const route = getRouteApi("/operations");
type Tab = "jobs" | "schedules" | "releases" | "catalogs" | "gate" | "audit";

export function OperationsPage() {
  const { tab, job, result } = route.useSearch();
  const navigate = useNavigate();
  const who = useQuery(ask.identity());
  const tabs: (readonly [Tab, string])[] = [];
  if (useFeature("jobs")) tabs.push(["jobs", "Jobs"], ["schedules", "Schedules"]);
  if (useFeature("releases")) tabs.push(["releases", "Releases"]);
  const catalogs = useQuery(ask.catalogs());
  if ((catalogs.data?.catalogs.length ?? 0) > 0) tabs.push(["catalogs", "Catalogs"]);
  tabs.push(["gate", "Gate"]);
  if (who.data?.role === "admin") tabs.push(["audit", "Audit"]);
  const current = tabs.find(([key]) => key === tab)?.[0] ?? tabs[0]?.[0];
  return (
    <div className="page">
      <header><h1>Operations</h1></header>
      <Tabs label="Operations" value={current ?? "gate"} options={tabs} onChange={(key) => { void navigate({ to: "/operations", search: { tab: key }, replace: true }); }} />
      {current === "jobs" ? <Jobs chosen={job === undefined ? undefined : Number(job)} canWrite={who.data?.role !== "read"} /> : null}
      {current === "schedules" ? <Schedules canWrite={who.data?.role !== "read"} /> : null}
      {current === "releases" ? <Releases /> : null}
      {current === "catalogs" ? <Catalogs catalogs={catalogs.data?.catalogs ?? []} /> : null}
      {current === "gate" ? <Gate chosen={result} /> : null}
      {current === "audit" ? <Audit /> : null}
    </div>
  );
}

type Job = Schemas["JobSummary"];
const column = createColumnHelper<Job>();
const COLUMNS = [
  column.accessor("id", { header: "Job", cell: (info) => <Link to="/operations" search={{ tab: "jobs", job: String(info.getValue()) }} className="mono">{info.getValue()}</Link> }),
  column.accessor("kind", { header: "Kind" }),
  column.accessor("state", { header: "State", cell: (info) => <span className={`state ${info.getValue()}`}>{info.getValue()}</span> }),
  column.accessor((job) => job.completed_steps / Math.max(1, job.steps), { id: "progress", header: "Progress", meta: "optional", cell: (info) => <Progress job={info.row.original} /> }),
  column.accessor("attempts", { header: "Attempts", meta: "optional", cell: (info) => `${info.getValue()} of ${info.row.original.max_attempts}` }),
  column.accessor("requested_by", { header: "Requested by", meta: "optional" }),
  column.accessor("created_at", { header: "Created", cell: (info) => <When at={info.getValue()} /> }),
];

function Progress({ job }: { job: Job }) {
  if (job.state !== "succeeded" && job.state !== "running" && job.completed_steps === 0) return null;
  const share = job.state === "succeeded" ? 1 : (job.progress?.share ?? job.completed_steps / Math.max(1, job.steps));
  return <span className="row" title={job.progress?.step}><span className="meter"><i style={{ width: `${100 * share}%`, background: "var(--chart-1)" }} /></span><span className="small faint">{Math.round(100 * share)}%</span></span>;
}

function Jobs({ chosen, canWrite }: { chosen?: number; canWrite: boolean }) {
  const jobs = useQuery(ask.jobs());
  const navigate = useNavigate();
  const [sorting, setSorting] = useState<SortingState>([{ id: "id", desc: true }]);
  const table = useReactTable({
    data: jobs.data?.jobs ?? NO_JOBS, columns: COLUMNS, state: { sorting }, onSortingChange: setSorting,
    getCoreRowModel: getCoreRowModel(), getSortedRowModel: getSortedRowModel(), getRowId: (job) => String(job.id),
  });
  const counts = jobs.data?.counts ?? {};
  return (
    <div className="grid">
      {chosen === undefined ? null : <JobDetails id={chosen} canWrite={canWrite} />}
      <Panel title="Jobs" aside={Object.entries(counts).map(([state, count]) => `${count} ${state}`).join(", ")}>
        <Loaded query={jobs}>
          {(report) => report.jobs.length === 0 ? <Empty command="lumos run ingest">No job has been requested.</Empty> : (
            <div className="scroll" tabIndex={0}>
              <table>
                <thead>
                  {table.getHeaderGroups().map((group) => (
                    <tr key={group.id}>
                      {group.headers.map((header) => (
                        <th key={header.id} className={header.column.columnDef.meta as string | undefined} aria-sort={header.column.getIsSorted() === false ? "none" : header.column.getIsSorted() === "asc" ? "ascending" : "descending"}>
                          <button type="button" onClick={header.column.getToggleSortingHandler()}>{flexRender(header.column.columnDef.header, header.getContext())} {header.column.getIsSorted() === "asc" ? "↑" : header.column.getIsSorted() === "desc" ? "↓" : ""}</button>
                        </th>
                      ))}
                    </tr>
                  ))}
                </thead>
                <tbody>
                  {table.getRowModel().rows.map((row) => (
                    <tr key={row.id} className="click" aria-current={row.original.id === chosen} onClick={() => { void navigate({ to: "/operations", search: { tab: "jobs", job: row.id } }); }}>
                      {row.getVisibleCells().map((cell) => <td key={cell.id} className={cell.column.columnDef.meta as string | undefined}>{flexRender(cell.column.columnDef.cell, cell.getContext())}</td>)}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Loaded>
      </Panel>
    </div>
  );
}

const NO_JOBS: Job[] = [];

/** A job with its progress and log as they change. */
function JobDetails({ id, canWrite }: { id: number; canWrite: boolean }) {
  const [state, setState] = useState<Schemas["JobReport"]>();
  const [log, setLog] = useState<Schemas["JobLogLine"][]>([]);
  const [failure, setFailure] = useState<unknown>();
  const [attempt, setAttempt] = useState(0);
  const queries = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    setLog([]);
    setFailure(undefined);
    follow(`/api/v1/jobs/events?id=${id}`, stop.signal, ({ event, data }) => {
      if (event === "job") setState(JSON.parse(data) as Schemas["JobReport"]);
      if (event === "log") setLog((lines) => [...lines.slice(-999), JSON.parse(data) as Schemas["JobLogLine"]]);
    }).catch((error: unknown) => { if (!stop.signal.aborted) setFailure(error); });
    return () => { stop.abort(); };
  }, [id, attempt]);
  const act = useMutation({
    mutationFn: (what: "cancel" | "retry") => what === "cancel" ? unwrap(api.POST("/api/v1/jobs/cancel", { body: { id } })) : unwrap(api.POST("/api/v1/jobs/retry", { body: { id } })),
    onSuccess: async () => { setAttempt((count) => count + 1); await queries.invalidateQueries({ queryKey: ["jobs"] }); },
  });
  if (failure !== undefined) return <Problem error={failure} />;
  if (state === undefined) return <Panel title={`Job ${id}`}><Empty>…</Empty></Panel>;
  const ended = ["succeeded", "failed", "dead", "cancelled"].includes(state.state);
  return (
    <Panel
      title={<>Job {id}: {state.kind} <span className={`state ${state.state}`} style={{ marginLeft: 10, fontWeight: 400 }}>{state.state}</span></>}
      aside={canWrite ? (ended
        ? (state.state === "succeeded" ? undefined : <button type="button" className="button small" disabled={act.isPending} onClick={() => { act.mutate("retry"); }}>Retry</button>)
        : <button type="button" className="button small" disabled={act.isPending || state.cancel_requested} onClick={() => { act.mutate("cancel"); }}>Cancel</button>) : undefined}
      flush={false}
    >
      <div className="stack">
        {act.error === null ? null : <Problem error={act.error} />}
        {state.error ? <div className="problem">{state.error}</div> : null}
        {(state.problems ?? []).map((each) => <div key={each} className="small muted">{each}</div>)}
        <Progress job={state as Job} />
        {log.length === 0 ? <span className="small faint">The log is empty.</span> : (
          <div className="log" tabIndex={0} aria-label="Log">{log.map((line, index) => <div key={index}><span className="faint">{line.at.slice(11, 19)}</span> {line.text}</div>)}</div>
        )}
      </div>
    </Panel>
  );
}

function Schedules({ canWrite }: { canWrite: boolean }) {
  const schedules = useQuery(ask.schedules());
  const queries = useQueryClient();
  const toggle = useMutation({
    mutationFn: ({ name, paused }: { name: string; paused: boolean }) => paused
      ? unwrap(api.POST("/api/v1/schedules/resume", { body: { name } }))
      : unwrap(api.POST("/api/v1/schedules/pause", { body: { name } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["schedules"] }),
  });
  return (
    <Panel title="Schedules">
      {toggle.error === null ? null : <Problem error={toggle.error} />}
      <Loaded query={schedules}>
        {(report) => report.schedules.length === 0 ? <Empty command='lumos schedule add nightly "0 2 * * *" ingest'>Nothing is scheduled.</Empty> : (
          <div className="scroll" tabIndex={0}><table>
            <thead><tr><th>Schedule</th><th className="optional">Job</th><th>When</th><th>Next</th><th className="optional">Last</th><th /></tr></thead>
            <tbody>{report.schedules.map((each) => (
              <tr key={each.name}>
                <td><bdi className="name">{each.name}</bdi>{each.paused ? <span className="faint"> paused</span> : null}</td><td className="optional">{each.kind}</td><td><code>{each.cron}</code> <span className="small faint">{each.timezone}</span></td>
                <td><When at={each.next_due} /></td><td className="optional"><When at={each.last_due} /></td>
                <td>{canWrite ? <button type="button" className="link small" onClick={() => { toggle.mutate(each); }}>{each.paused ? "Resume" : "Pause"}</button> : null}</td>
              </tr>
            ))}</tbody>
          </table></div>
        )}
      </Loaded>
    </Panel>
  );
}

function Releases() {
  const releases = useQuery(ask.releases());
  return (
    <Panel title="Releases">
      <Loaded query={releases}>
        {(report) => report.releases.length === 0 ? <Empty command="lumos release notify NAME">No release has been announced.</Empty> : (
          <div className="scroll" tabIndex={0}><table>
            <thead><tr><th>Release</th><th>At (UTC)</th><th className="optional">Announced by</th><th>Datasets</th></tr></thead>
            <tbody>{report.releases.map(({ release, states }) => (
              <tr key={release.name}><td><bdi className="name">{release.name}</bdi></td><td>{formatTime(release.at)}</td><td className="muted optional">{release.created_by}</td><td>{Object.entries(states).map(([state, count]) => `${count} ${state}`).join(", ")}</td></tr>
            ))}</tbody>
          </table></div>
        )}
      </Loaded>
    </Panel>
  );
}

/** The catalogs that changes are published to, the changes that they have not received yet, and where they differ. */
function Catalogs({ catalogs }: { catalogs: readonly Schemas["CatalogStatus"][] }) {
  return (
    <div className="grid">
      <Panel title="Catalogs" aside={`${formatNumber(catalogs.filter((each) => each.in_sync).length)} of ${formatNumber(catalogs.length)} in sync`}>
        <div className="scroll" tabIndex={0}><table>
          <thead><tr><th>Catalog</th><th>State</th><th>Not published yet</th><th className="num">Conflicts</th></tr></thead>
          <tbody>{catalogs.map((each) => (
            <tr key={each.name}>
              <td><bdi className="name">{each.name}</bdi></td>
              <td><span className={`state ${each.in_sync ? "succeeded" : "running"}`}>{each.in_sync ? "in sync" : "behind"}</span></td>
              <td className="muted">{Object.entries(each.pending).filter(([, count]) => count > 0).map(([kind, count]) => `${formatNumber(count)} ${kind}`).join(", ")}</td>
              <td className="num">{(each.conflict_count ?? 0) === 0 ? <span className="faint">none</span> : formatNumber(each.conflict_count ?? 0)}</td>
            </tr>
          ))}</tbody>
        </table></div>
      </Panel>
      {catalogs.filter((each) => (each.conflicts ?? []).length > 0).map((each) => <Conflicts key={each.name} catalog={each} />)}
    </div>
  );
}

/** Values that users of a catalog and Lumos changed differently, side by side. */
function Conflicts({ catalog }: { catalog: Schemas["CatalogStatus"] }) {
  const { name, conflicts = [], conflict_count: count = 0 } = catalog;
  return (
    <Panel title={<>Conflicts with <bdi>{name}</bdi></>} aside={count > conflicts.length ? `the newest ${conflicts.length} of ${formatNumber(count)}` : undefined}>
      <p className="note small muted">{name} keeps the value of its users. A conflict ends when both have the same value.</p>
      <div className="scroll" tabIndex={0}><table className="conflicts">
        <thead><tr><th>Entry</th><th>Value</th><th>In {name}</th><th>In Lumos</th><th>Found</th></tr></thead>
        <tbody>{conflicts.flatMap((entry) => entry.values.map((each, index) => (
          <tr key={`${entry.kind} ${entry.key} ${each.path}`}>
            <td>{index > 0 ? null : entry.kind === "datasets" ? <DatasetLink urn={entry.key} /> : <><bdi className="name">{visible(entry.key)}</bdi> <span className="small faint">{entry.kind}</span></>}</td>
            <td><code><bdi>{visible(each.path)}</bdi></code></td>
            <td className="wrap kept" data-in={`In ${name}`}><bdi>{visible(each.theirs)}</bdi></td>
            <td className="wrap" data-in="In Lumos"><bdi>{visible(each.ours)}</bdi></td>
            <td className="small nowrap">{index > 0 ? null : <When at={entry.found_at} />}</td>
          </tr>
        )))}</tbody>
      </table></div>
    </Panel>
  );
}

function Gate({ chosen }: { chosen?: string }) {
  const results = useQuery(ask.gateResults());
  const navigate = useNavigate();
  return (
    <div className="grid">
      {chosen === undefined ? null : <GateDetails id={chosen} />}
      <Panel title="Gate results" aside={results.data === undefined ? undefined : plural(results.data.results.length, "result")}>
        <Loaded query={results}>
          {(report) => report.results.length === 0 ? <Empty command="lumos gate init">No pull request has been checked. Set the gate up in CI.</Empty> : (
            <div className="scroll" tabIndex={0}><table>
              <thead><tr><th className="optional">Repository</th><th>Change</th><th>Verdict</th><th>Headline</th><th className="optional">When</th></tr></thead>
              <tbody>{report.results.map((each) => (
                <tr key={each.id} className="click" aria-current={each.id === chosen} onClick={() => { void navigate({ to: "/operations", search: { tab: "gate", result: each.id } }); }}><td className="optional"><bdi className="name">{visible(each.repository)}</bdi></td><td><Link to="/operations" search={{ tab: "gate", result: each.id }}>{each.pr === null || each.pr === undefined ? each.head.slice(0, 10) : `#${each.pr}`}</Link></td><td><span className={`state ${each.verdict}`}>{each.verdict}</span></td><td className="muted wrap">{visible(each.headline)}</td><td className="optional"><When at={each.recorded_at} /></td></tr>
              ))}</tbody>
            </table></div>
          )}
        </Loaded>
      </Panel>
    </div>
  );
}

/** The findings of a result, and the waivers that approve some of them or have no effect. */
function GateDetails({ id }: { id: string }) {
  const result = useQuery(ask.gateResult(id));
  return (
    <Loaded query={result}>
      {({ report }) => (
        <Panel title={report.headline} aside={`${report.base} to ${report.head}`}>
          {report.findings.length === 0 ? <Empty>Nothing was found.</Empty> : (
            <div className="scroll" tabIndex={0}><table className="dense">
              <thead><tr><th>Dataset</th><th>Column</th><th>Affected</th><th>Finding</th><th>Waiver</th></tr></thead>
              <tbody>{report.findings.map((each) => (
                <tr key={each.fingerprint}>
                  <td><bdi className="name">{visible(each.dataset)}</bdi></td>
                  <td><code><bdi>{visible(each.path)}</bdi></code></td>
                  <td><bdi className="name">{visible(each.affected ?? "")}</bdi>{each.owners.length === 0 ? null : <div className="small muted">{visible(each.owners.join(", "))}</div>}</td>
                  <td className="wrap">{visible(each.message)}{each.used ? <div className="small faint mono">{visible(each.used.file)}{each.used.line ? `:${each.used.line}` : ""}</div> : null}</td>
                  <td className="nowrap">{each.waived_by ? <>approved by <b><bdi>{visible(each.waived_by)}</bdi></b></> : <span className="faint">none</span>}</td>
                </tr>
              ))}</tbody>
            </table></div>
          )}
          {report.waivers.map((each) => <p key={each.fingerprint} className="small muted" style={{ padding: "8px 14px" }}>The waiver <code>{each.fingerprint}</code> has no effect: {visible(each.reason)}</p>)}
        </Panel>
      )}
    </Loaded>
  );
}

/** A dataset as a link, with its path: many datasets have the same name. */
function AuditTarget({ target }: { target: string }) {
  return target.startsWith(DATASET) ? <DatasetLink urn={target} name={target.slice(DATASET.length)} /> : <bdi className="name">{visible(target)}</bdi>;
}

const DATASET = "lumos://";

function Audit() {
  const audit = useQuery(ask.audit());
  return (
    <Panel title="Audit log" aside="the latest 100 actions">
      <Loaded query={audit}>
        {(report) => report.entries.length === 0 ? <Empty>Nobody has changed anything.</Empty> : (
          <div className="scroll" tabIndex={0}><table className="dense">
            <thead><tr><th className="num">#</th><th>Time (UTC)</th><th>Who</th><th>From</th><th>Action</th><th>Target</th><th>Details</th></tr></thead>
            <tbody>{report.entries.map((each) => (
              <tr key={each.sequence}><td className="num faint">{each.sequence}</td><td className="nowrap small">{formatTime(each.at)}</td><td className="nowrap"><bdi>{each.actor}</bdi></td><td className="small faint">{each.origin}</td><td className="nowrap">{each.action}</td><td className="small"><AuditTarget target={each.target} /></td><td className="small muted wrap"><bdi>{visible(each.details)}</bdi></td></tr>
            ))}</tbody>
          </table></div>
        )}
      </Loaded>
    </Panel>
  );
}
