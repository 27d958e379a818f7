/** What changed, who breaks, what it costs: the first page. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { dataNow, type Schemas } from "../api/client";
import { useFeature } from "../api/features";
import * as ask from "../api/queries";
import { Sparkline } from "../ui/charts";
import { amount, formatDay, formatMoney, formatNumber, formatPercent, formatShare, listed, plural, visible, withNames } from "../ui/format";
import { addressOf, problemsOfLastScan } from "./sources";
import { ValuePanel } from "./value";
import { ChangeText, DatasetLink, Empty, Loaded, Loading, Owners, Panel, Segmented, Verdict, When } from "../ui/parts";

type Event = Schemas["EventReport"];

const NOT_METADATA = ["CREATED", "DELETED", "MERGED", "MODIFIED", "RENAMED", "RESTORED", "SCHEMA_CHANGED", "SPLIT"];
const WEEK = 7 * 24 * 3600 * 1000;

function weekAgo(now: number = dataNow()): string {
  // Whole hours, so that the answer can be kept for a while.
  return new Date(Math.floor((now - WEEK) / 3_600_000) * 3_600_000).toISOString().replace(".000Z", "Z");
}

export function HomePage() {
  const since = weekAgo();
  const breaking = useQuery(ask.changes({ since, breaking: true, limit: 50 }));
  const [all, setAll] = useState(false);
  const feed = useQuery(ask.changes({ limit: 40, ...(all ? {} : { types: NOT_METADATA }) }));
  const overview = useQuery(ask.overview());
  return (
    <div className="page">
      <header>
        <h1 className="visually-hidden">Home</h1>
        <Headline events={breaking.data?.events} />
      </header>
      <div className="columns home">
        <div className="grid">
          <Panel title="Breaking changes this week" aside={breaking.data === undefined ? undefined : plural(breaking.data.summary.breaking, "change")}>
            <Loaded query={breaking}>
              {(report) => report.events.length === 0
                ? <Empty>No breaking change in the last seven days.</Empty>
                : report.events.map((each) => <Break key={each.event_id} event={each} />)}
            </Loaded>
          </Panel>
          <Panel title="Changes" aside={<Segmented label="Which changes" value={all ? "all" : "data"} options={[["data", "Schema and data"], ["all", "All"]]} onChange={(value) => { setAll(value === "all"); }} />}>
            <Loaded query={feed} lines={8}>
              {(report) => report.events.length === 0
                ? <Empty command="lumos ingest PATH">Nothing has been scanned yet.</Empty>
                : <Feed events={report.events} />}
            </Loaded>
          </Panel>
        </div>
        <div className="grid">
          <Panel title="Coverage" aside={overview.data === undefined ? undefined : plural(overview.data.datasets, "dataset")}>
            <Loaded query={overview}>{(report) => <Coverage report={report} />}</Loaded>
          </Panel>
          <CostPanel />
          <ValuePanel />
          <Panel title="Sources">
            <Loaded query={overview}>
              {(report) => report.sources.length === 0
                ? <Empty command="lumos ingest PATH">No source has been scanned.</Empty>
                : <Sources sources={report.sources} />}
            </Loaded>
          </Panel>
          <FailedJobs />
        </div>
      </div>
    </div>
  );
}

function Headline({ events }: { events: Event[] | undefined }) {
  if (events === undefined) return <p className="headline faint">Reading this week’s changes…</p>;
  if (events.length === 0) return <p className="headline">Nothing broke this week.</p>;
  const affected = new Map<string, readonly string[]>();
  for (const event of events) {
    for (const each of event.affected?.datasets ?? []) if (each.verdict === "breaking") affected.set(each.urn, each.owners);
  }
  const owners = [...new Set([...affected.values()].flat())].sort();
  return (
    <p className="headline">
      <b>{plural(events.length, "breaking change")}</b> this week{" "}
      {affected.size === 0
        ? "and no reader of them is known."
        : <>{events.length === 1 ? "breaks" : "break"} {plural(affected.size, "dataset")}{owners.length === 0 ? "" : <> of {listed(owners, 4)}</>}.</>}
    </p>
  );
}

function Break({ event }: { event: Event }) {
  const victims = event.affected?.datasets ?? [];
  return (
    <article className="break">
      <div className="row wrap spread">
        <span className="row wrap">
          <DatasetLink urn={event.urn} className="title" />
          <span className="small faint mono">{event.schema_version}</span>
        </span>
        <span className="small faint"><When at={event.timestamp} /></span>
      </div>
      <div className="what stack" style={{ gap: 2 }}>
        {event.changes.filter((each) => each.consumer === "breaking" || each.storage === "breaking").map((each) => (
          <div key={`${each.path}${each.kind}`} className="row" style={{ alignItems: "baseline" }}>
            <Verdict of="breaking" /> <ChangeText {...each} before={each.before} after={each.after} />
          </div>
        ))}
      </div>
      {victims.length === 0
        ? <div className="small muted">No downstream dataset is known to read this.</div>
        : (
          <div className="victims">
            {victims.slice(0, 6).map((each) => (
              <div className="victim" key={each.urn}>
                <span className="row" style={{ gap: 6, alignItems: "baseline" }}>
                  <Verdict of={each.verdict} label={each.verdict === "breaking" ? "breaks" : each.verdict} />
                  <DatasetLink urn={each.urn} name={each.name} />
                </span>
                <span className="muted clip"><Owners names={each.owners} /></span>
                <span className="small muted wrap">{each.uses[0] === undefined ? "" : <>{withNames(each.uses[0].reason)}{each.uses[0].file ? <code className="faint"> {each.uses[0].file}{each.uses[0].line ? `:${each.uses[0].line}` : ""}</code> : null}</>}</span>
              </div>
            ))}
            {victims.length > 6 ? <Link to="/lineage" search={{ urn: event.urn, side: "downstream" }} className="small">and {victims.length - 6} more</Link> : null}
          </div>
        )}
    </article>
  );
}

function Feed({ events }: { events: Event[] }) {
  const dayOf = (event: Event | undefined) => event?.timestamp.slice(0, 10);
  return (
    <ul className="feed">
      {events.map((event, index) => {
        const isFirst = dayOf(event) !== dayOf(events[index - 1]);
        return (
          <li key={event.event_id} className={isFirst ? "first" : ""}>
            <span className="day">{isFirst ? formatDay(event.timestamp.slice(0, 10)).replace(` ${new Date(dataNow()).getUTCFullYear()}`, "") : ""}</span>
            <span className="small faint num">{event.timestamp.slice(11, 16)}</span>
            <span className="small muted optional">{event.type.toLowerCase().replaceAll("_", " ")}</span>
            <span className="clip"><DatasetLink urn={event.urn} /></span>
            <span className="small muted wrap summary">{event.summary.replaceAll(" -> ", " → ")}</span>
            {event.breaking ? <Verdict of="breaking" /> : <span />}
          </li>
        );
      })}
    </ul>
  );
}

function Coverage({ report }: { report: Schemas["OverviewReport"] }) {
  const hasPrices = useQuery({ ...ask.hasPrices(), enabled: useFeature("cost_attribution") });
  const priced = useQuery({ ...ask.costTop({ limit: 1000, ranked_by: "own" }), enabled: report.datasets > 0 && hasPrices.data === true });
  const trends = useQuery(ask.trends());
  const past = (name: "owned" | "documented" | "with_lineage") => (trends.data?.months ?? []).filter((each) => each.datasets > 0).map((each) => each[name] / each.datasets);
  const tiles: [label: string, count: number | null, past: number[]][] = [
    ["owned", report.owned, past("owned")],
    ["documented", report.documented, past("documented")],
    ["with lineage", report.with_lineage, past("with_lineage")],
  ];
  if (hasPrices.data === true && priced.data === undefined && !priced.isError) tiles.push(["priced", null, []]);
  if (priced.data !== undefined) {
    const urns = priced.data.datasets.filter((each) => each.kind === "dataset" && amount(each.own) > 0).length;
    // The list has the most expensive datasets; the others have a sum.
    const others = amount(priced.data.others.own) > 0 ? priced.data.others.count : 0;
    tiles.push(["priced", Math.min(report.datasets, urns + others), []]);
  }
  return (
    <div className="tiles">
      {tiles.map(([label, count, shares]) => (
        <div className="tile" key={label}>
          <div className="row spread" style={{ alignItems: "baseline" }}>
            <span className="value">{count === null ? "…" : formatShare(count, report.datasets)}</span>
            <Sparkline values={shares} width={64} height={22} label={`Share ${label}, by month`} />
          </div>
          <div className="small muted">{label}</div>
          <div className="bar" role="img" aria-label={`${count === null ? "An unknown number" : formatNumber(count)} of ${formatNumber(report.datasets)} ${label}`}>
            <i style={{ width: `${report.datasets === 0 ? 0 : (100 * (count ?? 0)) / report.datasets}%` }} />
          </div>
        </div>
      ))}
    </div>
  );
}

function CostPanel() {
  const priced = useQuery({ ...ask.hasPrices(), enabled: useFeature("cost_attribution") });
  const trend = useQuery({ ...ask.costTrend(), enabled: priced.data === true });
  if (trend.data === undefined) return priced.data === true && !trend.isError ? <Panel title="Cost"><Loading lines={2} /></Panel> : null;
  const { now, points, currency, trends } = trend.data;
  const past = points.map((each) => amount(each.monthly));
  const change = trends.vs_last_month;
  return (
    <Panel title="Cost" aside={<Link to="/cost" search={{}} className="link">Explore</Link>} flush={false}>
      <div className="row spread" style={{ alignItems: "flex-end" }}>
        <div>
          <div className="figure">{formatMoney(now.monthly, currency)}</div>
          <div className="small muted">
            last 30 days
            {change === null || change === undefined ? "" : `, ${formatPercent(change)} against last month`}
          </div>
        </div>
        <Sparkline values={[...past, amount(now.monthly)]} width={150} height={40} label="Cost of each month" />
      </div>
    </Panel>
  );
}

function Sources({ sources }: { sources: Schemas["SourceOverview"][] }) {
  const jobs = useQuery({ ...ask.jobs(), enabled: useFeature("jobs") });
  const problemsOf = (source: Schemas["SourceOverview"]) => {
    const scan = problemsOfLastScan(source, jobs.data?.jobs ?? []);
    if (scan === undefined) return null;
    const [first = "", ...others] = scan.problems;
    return (
      <div className="small wrap">
        <Link to="/operations" search={{ tab: "jobs", job: String(scan.job) }} title={first}>{plural(scan.problems.length, "problem")}</Link>
        <span className="muted">: <bdi>{visible(first)}</bdi>{others.length > 0 ? " …" : ""}</span>
      </div>
    );
  };
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <thead><tr><th>Source</th><th className="num">Datasets</th><th>Last scan</th><th>Last change</th></tr></thead>
        <tbody>
          {sources.map((each) => (
            <tr key={each.source}>
              <td className="wrap" title={each.source}><bdi>{addressOf(each.source)}</bdi>{problemsOf(each)}</td>
              <td className="num">{formatNumber(each.datasets)}</td>
              <td className="small"><When at={each.last_scan} /></td>
              <td className="small"><When at={each.last_change} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function FailedJobs() {
  const jobs = useQuery({ ...ask.jobs(), enabled: useFeature("jobs") });
  const failed = (jobs.data?.jobs ?? []).filter((each) => each.state === "failed" || each.state === "dead").slice(0, 5);
  if (failed.length === 0) return null;
  return (
    <Panel title="Failed jobs" aside={<Link to="/operations" search={{}} className="link">All jobs</Link>}>
      <table>
        <tbody>
          {failed.map((each) => (
            <tr key={each.id}>
              <td className="nowrap"><span className={`state ${each.state}`}>{each.kind}</span></td>
              <td className="small muted wrap">{each.error ?? ""}</td>
              <td className="small nowrap"><When at={each.finished_at} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

