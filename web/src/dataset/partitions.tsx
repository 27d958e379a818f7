/** Partitions over time: a calendar of rows or bytes, with missing days. */
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Schemas } from "../api/client";
import * as ask from "../api/queries";
import { Bars, Sized } from "../ui/charts";
import { formatBytes, formatCount, plural } from "../ui/format";
import { Panel, Segmented } from "../ui/parts";
import { calendar, levels, type Day } from "./calendar";

type Measure = "rows" | "bytes";
const LEFT = 30;
const TOP = 18;
const MAX_CELL = 15;

export function PartitionsPanel({ urn }: { urn: string }) {
  const partitions = useQuery(ask.partitions(urn));
  const [wanted, setMeasure] = useState<Measure>("rows");
  const report = partitions.data;
  if (report === undefined || report.days.length === 0) return null;
  const hasRows = report.days.some((each) => each.rows !== null && each.rows !== undefined);
  const measure = hasRows ? wanted : "bytes";
  const isDaily = report.granularity !== "month" && report.granularity !== "year";
  const format = (value: number) => (measure === "rows" ? formatCount(value) : formatBytes(value));
  const first = report.days[0]?.day ?? "";
  const last = report.days.at(-1)?.day ?? "";
  return (
    <Panel
      title="Partitions"
      aside={hasRows ? <Segmented label="Measure" value={measure} options={[["rows", "Rows"], ["bytes", "Bytes"]]} onChange={setMeasure} /> : undefined}
      flush={false}
    >
      <div className="stack">
        <p className="small muted">
          {plural(report.days.reduce((sum, each) => sum + each.partitions, 0), "partition")} from {first} to {last}
          {report.partition_keys.length === 0 ? "" : <>, by <code>{report.partition_keys.join(", ")}</code></>}
          {report.undated > 0 ? `; ${plural(report.undated, "file")} without a date` : ""}.{" "}
          {isDaily ? <MissingDays days={report.missing} /> : null}
        </p>
        {isDaily
          ? <Sized>{(width) => <Calendar width={width} report={report} measure={measure} format={format} />}</Sized>
          : <Bars label={`${measure} of each ${report.granularity ?? "period"}`} format={format} points={report.days.slice(-60).map((each) => ({ label: each.day.slice(0, report.granularity === "year" ? 4 : 7), value: each[measure] ?? 0, title: titleOf(toDay(each)) }))} />}
      </div>
    </Panel>
  );
}

function MissingDays({ days }: { days: readonly string[] }) {
  if (days.length === 0) return <>No day is missing.</>;
  return <b className="missing">{plural(days.length, "day")} missing: {days.slice(-4).map((day, index) => <span key={day}>{index === 0 ? "" : ", "}{day}</span>)}{days.length > 4 ? ` and ${days.length - 4} more` : ""}</b>;
}

const toDay = (each: Schemas["PartitionDay"]): Day => ({ ...each, rows: each.rows ?? null });

function titleOf(each: Day): string {
  return `${each.day}: ${each.rows === null ? "" : `${formatCount(each.rows)} rows, `}${formatBytes(each.bytes)} in ${plural(each.files, "file")}`;
}

function Calendar({ width, report, measure, format }: { width: number; report: Schemas["PartitionsReport"]; measure: Measure; format: (value: number) => string }) {
  const { cells, weeks, months } = useMemo(() => calendar(report.days.map(toDay), report.missing), [report]);
  const values = cells.flatMap((each) => (each.sums === null ? [] : [each.sums[measure] ?? 0]));
  const level = levels(values);
  const step = Math.min(MAX_CELL, (width - LEFT) / Math.max(1, weeks));
  const size = Math.max(2, step - 2);
  const height = TOP + 7 * step + 4;
  const least = Math.min(...values);
  const most = Math.max(...values);
  return (
    <div className="stack">
      <svg width={LEFT + weeks * step} height={height} className="chart heat-map" role="img" aria-label={`${measure} of each day, ${plural(report.missing.length, "missing day")}`}>
        {["Mon", "Wed", "Fri"].map((label, index) => <text key={label} x={0} y={TOP + (2 * index + 0.8) * step}>{label}</text>)}
        {months.filter((month, index) => index === 0 || (month.week - (months[index - 1]?.week ?? 0)) * step > 26).map((month) => <text key={`${month.week}${month.label}`} x={LEFT + month.week * step} y={11}>{month.label}</text>)}
        {cells.map((cell) => (
          <rect
            key={cell.day} x={LEFT + cell.week * step} y={TOP + cell.weekday * step} width={size} height={size} rx={2}
            className={cell.sums === null ? "gap" : `level-${level(cell.sums[measure] ?? 0)}`}
          >
            <title>{cell.sums === null ? `${cell.day}: missing` : titleOf(cell.sums)}</title>
          </rect>
        ))}
      </svg>
      <div className="legend">
        <span>{least === most ? null : format(least)} <svg width={60} height={12} className="heat-map" aria-hidden="true">{[1, 2, 3, 4].map((each) => <rect key={each} x={(each - 1) * 15} width={12} height={12} rx={2} className={`level-${each}`} />)}</svg> {format(most)}{measure === "rows" ? " rows" : ""} a day</span>
        {report.missing.length === 0 ? null : <span><svg width={13} height={13} className="heat-map" aria-hidden="true"><rect x={0.5} y={0.5} width={12} height={12} rx={2} className="gap" /></svg> missing</span>}
      </div>
    </div>
  );
}
