/** What Lumos is worth: figures of the store before and now, and a formula that people edit. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../api/client";
import * as ask from "../api/queries";
import { Sparkline } from "../ui/charts";
import { formatMoney, formatNumber, formatShare, plural } from "../ui/format";
import { Panel } from "../ui/parts";
import { evaluate } from "./formula";
import { medianFindSeconds } from "./timing";

type Month = Schemas["MonthlyFigures"];
const KEY = "lumos.value";

interface Inputs {
  formula: string;
  currency: string;
  engineers: number;
  hours_saved: number;
  hourly_rate: number;
  incident_hours: number;
  duplicate_cost: number;
}

const DEFAULTS: Inputs = {
  formula: "engineers * hours_saved * 52 * hourly_rate + prevented * incident_hours * hourly_rate + duplicates_retired * duplicate_cost * 12",
  currency: "USD", engineers: 10, hours_saved: 3, hourly_rate: 100, incident_hours: 8, duplicate_cost: 0,
};
const FIELDS = [
  ["engineers", "Engineers"], ["hours_saved", "Hours saved by each, a week"], ["hourly_rate", "Cost of an hour"],
  ["incident_hours", "Hours that an incident costs"], ["duplicate_cost", "Monthly cost of a duplicate"],
] as const;

function savedInputs(): Inputs {
  try {
    return { ...DEFAULTS, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Inputs>) };
  } catch {
    return DEFAULTS;
  }
}

export function ValuePanel() {
  const trends = useQuery(ask.trends());
  const [inputs, setInputs] = useState(savedInputs);
  const [editing, setEditing] = useState(false);
  const report = trends.data;
  // Months before the first scan have no share.
  const covered = (report?.months ?? []).filter((each) => each.datasets > 0);
  const first = covered[0];
  const last = report?.months.at(-1);
  if (report === undefined || first === undefined || last === undefined || last.datasets === 0) return null;
  const total = (name: "incidents" | "resolved" | "duplicates_retired" | "prevented") => report.months.reduce((sum, each) => sum + each[name], 0);
  const values = { engineers: inputs.engineers, hours_saved: inputs.hours_saved, hourly_rate: inputs.hourly_rate, incident_hours: inputs.incident_hours, duplicate_cost: inputs.duplicate_cost, prevented: total("prevented"), duplicates_retired: total("duplicates_retired"), incidents: total("incidents") };
  const set = (change: Partial<Inputs>) => {
    const next = { ...inputs, ...change };
    setInputs(next);
    localStorage.setItem(KEY, JSON.stringify(next));
  };
  return (
    <Panel title="Value" aside={`since ${report.months[0]?.month ?? first.month}`}>
      <div className="tiles">
        <Figure label="without an owner" value={formatShare(last.datasets - last.owned, last.datasets)} before={formatShare(first.datasets - first.owned, first.datasets)} months={covered} of={(each) => (each.datasets - each.owned) / each.datasets} />
        <Figure label="schema incidents" value={formatNumber(total("incidents"))} note={report.open_incidents === 0 ? undefined : `${formatNumber(report.open_incidents)} open`} months={report.months} of={(each) => each.incidents} />
        <Resolution months={report.months} />
        <Figure label="duplicates retired" value={formatNumber(total("duplicates_retired"))} note={report.duplicates === 0 ? undefined : `${formatNumber(report.duplicates)} left`} months={report.months} of={(each) => each.duplicates_retired} />
        {total("prevented") === 0 ? null : <Figure label="stopped by the gate" value={formatNumber(total("prevented"))} months={report.months} of={(each) => each.prevented} />}
        <FindTime />
      </div>
      <div className="body stack" style={{ borderTop: "1px solid var(--line)" }}>
        <div className="row spread" style={{ alignItems: "baseline" }}>
          <span><Amount formula={inputs.formula} values={values} currency={inputs.currency} /> <span className="small muted">a year, by your formula</span></span>
          <button type="button" className="link small" aria-expanded={editing} onClick={() => { setEditing(!editing); }}>{editing ? "Close" : "Edit the formula"}</button>
        </div>
        {editing ? (
          <div className="stack">
            <label className="stack" style={{ gap: 3 }}><span className="small muted">Formula</span><textarea rows={3} className="mono" value={inputs.formula} onChange={(event) => { set({ formula: event.target.value }); }} /></label>
            <div className="inputs">
              {FIELDS.map(([name, label]) => (
                <label key={name} className="stack" style={{ gap: 3 }}><span className="small muted">{label} <code>{name}</code></span><input type="number" min={0} step="any" value={inputs[name]} onChange={(event) => { set({ [name]: Math.max(0, Number(event.target.value)) }); }} /></label>
              ))}
              <label className="stack" style={{ gap: 3 }}><span className="small muted">Currency</span><input type="text" maxLength={3} value={inputs.currency} onChange={(event) => { if (/^[A-Za-z]{0,3}$/.test(event.target.value)) set({ currency: event.target.value.toUpperCase() }); }} /></label>
            </div>
            <p className="small muted">Measured, from the store: <code>prevented</code> {formatNumber(values.prevented)}, <code>duplicates_retired</code> {formatNumber(values.duplicates_retired)}, <code>incidents</code> {formatNumber(values.incidents)}. All other numbers are yours; they stay in this browser. <button type="button" className="link" onClick={() => { set(DEFAULTS); }}>Reset</button></p>
          </div>
        ) : null}
      </div>
    </Panel>
  );
}

function Figure({ label, value, before, note, months, of }: { label: string; value: string; before?: string; note?: string; months: readonly Month[]; of: (month: Month) => number }) {
  return (
    <div className="tile">
      <div className="row spread" style={{ alignItems: "baseline" }}>
        <span className="value">{value}</span>
        <Sparkline values={months.map(of)} width={64} height={22} label={`${label}, by month`} />
      </div>
      <div className="small muted">{label}{before === undefined || before === value ? "" : `, was ${before}`}{note === undefined ? "" : `, ${note}`}</div>
    </div>
  );
}

/** The mean time until incidents were resolved; nothing if none was. */
function Resolution({ months }: { months: readonly Month[] }) {
  const known = months.filter((each) => each.hours_to_resolve !== null && each.hours_to_resolve !== undefined);
  const resolved = known.reduce((sum, each) => sum + each.resolved, 0);
  if (resolved === 0) return null;
  const hours = known.reduce((sum, each) => sum + (each.hours_to_resolve ?? 0) * each.resolved, 0) / resolved;
  return <Figure label="to resolve one" value={hours < 48 ? `${hours.toFixed(hours < 10 ? 1 : 0)} h` : plural(Math.round(hours / 24), "day")} months={known} of={(each) => each.hours_to_resolve ?? 0} />;
}

/** The median time from a search to an opened dataset in this browser. */
function FindTime() {
  const found = medianFindSeconds();
  if (found === null) return null;
  return (
    <div className="tile">
      <div className="value">{found.seconds < 90 ? `${Math.round(found.seconds)} s` : `${Math.round(found.seconds / 60)} min`}</div>
      <div className="small muted" title="From the first letter of a search to an opened dataset; measured in this browser only.">to find a dataset, {plural(found.count, "search")} here</div>
    </div>
  );
}

function Amount({ formula, values, currency }: { formula: string; values: Record<string, number>; currency: string }) {
  try {
    const amount = evaluate(formula, values);
    return <span className="figure">{currency.length === 3 ? formatMoney(amount, currency) : formatNumber(Math.round(amount))}</span>;
  } catch (error) {
    return <span className="missing" role="alert">{error instanceof Error ? error.message : String(error)}</span>;
  }
}
