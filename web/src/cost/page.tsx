/** The cost explorer: where the money goes, what moved, what could be saved. */
import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { dataNow, type Schemas } from "../api/client";
import { useFeature } from "../api/features";
import * as ask from "../api/queries";
import { amount, formatMoney, formatPercent, listed, monthBack, plural } from "../ui/format";
import { DatasetLink, Empty, Loaded, Panel, Problem, Segmented } from "../ui/parts";
import { sortedGroups, topMovers } from "./rules";
import { CostTrend } from "./trend";
import { CostSankey, CostTreemap, colourOf, sankeyOf } from "./charts";

const route = getRouteApi("/cost");
type By = "team" | "domain" | "platform" | "tag";
const BY: readonly (readonly [By, string])[] = [["team", "Team"], ["domain", "Domain"], ["platform", "Platform"], ["tag", "Tag"]];

export function CostPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const by = (BY.find(([key]) => key === search.by)?.[0] ?? "team");
  const top = useQuery(ask.costTop({ limit: 1000, ranked_by: "own" }));
  const grouped = useQuery(ask.costBy(by));
  const trend = useQuery(ask.costTrend());
  if (top.isError) return <div className="page"><Problem error={top.error} /></div>;
  return (
    <div className="page">
      <header className="row spread wrap">
        <div>
          <h1>Cost</h1>
          <p className="muted">{top.data === undefined ? "…" : <>{formatMoney(top.data.spent, top.data.currency)} from {top.data.first_day} to {top.data.last_day}</>}</p>
        </div>
        <Segmented label="Group by" value={by} options={BY} onChange={(value) => { void navigate({ to: "/cost", search: { by: value }, replace: true }); }} />
      </header>
      <div className="grid">
        <Panel title="Where the money goes" flush={false} aside={top.data === undefined ? undefined : plural(top.data.datasets.length, "dataset")}>
          <Loaded query={top}>{(report) => report.datasets.length === 0 ? <Empty command="lumos cost ingest FILE">No dataset has a cost in this period.</Empty> : <CostMap report={report} by={by} onOpen={(urn) => { void navigate({ to: "/dataset", search: { urn, tab: "cost" } }); }} />}</Loaded>
        </Panel>
        <div className="columns">
          <div className="grid">
            <Panel title={`By ${by}`}>
              <Loaded query={grouped}>{(report) => <Groups report={report} />}</Loaded>
            </Panel>
            {top.data === undefined ? null : (
              <Panel title={`From ${by}s to types of cost`} flush={false}>
                <Flows report={top.data} by={by} />
              </Panel>
            )}
          </div>
          <div className="grid">
            <Panel title="Trend" flush={false}>
              <Loaded query={trend}>
                {(data) => <CostTrend report={data} height={190} />}
              </Loaded>
            </Panel>
            <Movers />
            <Savings />
          </div>
        </div>
        {(top.data?.remarks ?? []).map((each) => <p key={each} className="small muted">{each}</p>)}
      </div>
    </div>
  );
}

function CostMap({ report, by, onOpen }: { report: Schemas["CostTopReport"]; by: By; onOpen: (urn: string) => void }) {
  const items = useMemo(() => report.datasets.map((each) => ({ urn: each.urn, name: each.name, group: each[by], cost: amount(each.own) })), [report, by]);
  const groups = useMemo(() => sortedGroups(items), [items]);
  return (
    <div className="stack">
      <CostTreemap items={items} groups={groups} format={(value) => formatMoney(value, report.currency)} onOpen={onOpen} />
      <div className="legend">{groups.slice(0, 10).map((group) => <span key={group}><i style={{ background: colourOf(group, groups) }} />{group}</span>)}</div>
    </div>
  );
}

function Flows({ report, by }: { report: Schemas["CostTopReport"]; by: By }) {
  const rows = report.datasets.map((each) => ({ group: each[by], by_type: each.by_type as Record<string, unknown>, own: each.own }));
  const groups = sortedGroups(rows.map((each) => ({ group: each.group, cost: amount(each.own) })));
  const { nodes, links } = sankeyOf(rows, groups);
  if (links.length === 0) return <Empty>No cost to draw.</Empty>;
  return <CostSankey nodes={nodes} links={links} format={(value) => formatMoney(value, report.currency)} />;
}

function Groups({ report }: { report: Schemas["CostByReport"] }) {
  const most = Math.max(...report.groups.map((each) => amount(each.own)), 1e-9);
  if (report.groups.length === 0) return <Empty>No group has a cost.</Empty>;
  return (
    <table>
      <thead><tr><th>{BY.find(([key]) => key === report.by)?.[1] ?? report.by}</th><th className="optional" /><th className="num optional">Datasets</th><th className="num" title="What storing and computing these datasets costs">Own</th><th className="num" title="What would be saved without these datasets: their own cost and that of everything upstream that nothing else needs">Retained</th></tr></thead>
      <tbody>
        {[...report.groups].sort((one, two) => amount(two.own) - amount(one.own)).map((each) => (
          <tr key={each.name}>
            <td><bdi className="name">{each.name === "" ? "none" : each.name}</bdi></td>
            <td style={{ width: "28%" }} className="optional"><div className="bar"><i style={{ width: `${(100 * amount(each.own)) / most}%` }} /></div></td>
            <td className="num muted optional">{each.datasets}</td>
            <td className="num">{formatMoney(each.own, report.currency)}</td>
            <td className="num muted">{formatMoney(each.retained, report.currency)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The datasets whose own cost changed most between the last two complete months. */
function Movers() {
  const now = new Date(dataNow());
  const [older, newer] = [monthBack(2, now), monthBack(1, now)];
  const before = useQuery(ask.costTop({ limit: 1000, ranked_by: "own", period: older }));
  const after = useQuery(ask.costTop({ limit: 1000, ranked_by: "own", period: newer }));
  if (before.data === undefined || after.data === undefined) return null;
  const moves = topMovers(before.data.datasets, after.data.datasets).slice(0, 6);
  if (moves.length === 0) return null;
  return (
    <Panel title="Top movers" aside={`${older} to ${newer}`}>
      <table>
        <tbody>
          {moves.map((each) => (
            <tr key={each.urn}>
              <td><DatasetLink urn={each.urn} name={each.name} /></td>
              <td className="num">{each.change > 0 ? "+" : "−"}{formatMoney(Math.abs(each.change), after.data.currency)}</td>
              <td className="num small muted">{each.percent === null ? "new" : formatPercent(each.percent)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function Savings() {
  const retire = useQuery(ask.retire(5));
  const canAsk = useFeature("impact");
  if (retire.data === undefined || retire.data.steps.length === 0) return null;
  const { steps, currency, monthly_savings: all } = retire.data;
  return (
    <Panel title="Savings" aside={`${formatMoney(all, currency)} a month`}>
      <table>
        <tbody>
          {steps.map((each, index) => (
            <tr key={index}>
              <td className="wrap"><bdi>{listed(each.names, 3)}</bdi><div className="small muted">{each.teams.join(", ")}</div></td>
              <td className="num">{formatMoney(each.monthly_savings, currency)}</td>
              {canAsk ? <td><Link className="link small" to="/what-if" search={{ off: each.datasets }}>What-if</Link></td> : null}
            </tr>
          ))}
        </tbody>
      </table>
      <p className="small muted" style={{ padding: "8px 14px" }}>Unread datasets, in the order that saves most.</p>
    </Panel>
  );
}
