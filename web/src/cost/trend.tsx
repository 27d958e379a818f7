/** The cost of each recorded month and of the last 30 days, of a dataset or in all. */
import type { Schemas } from "../api/client";
import { Bars } from "../ui/charts";
import { amount, formatMoney } from "../ui/format";
import { Empty } from "../ui/parts";

export function CostTrend({ report, height }: { report: Schemas["CostTrendReport"]; height: number }) {
  if (report.points.length === 0) return <Empty>{(report.remarks ?? []).at(-1) ?? "No earlier period is recorded."}</Empty>;
  const money = (value: unknown) => formatMoney(value, report.currency);
  const bars = [
    ...report.points.map((each) => ({ label: each.period, value: amount(each.monthly), title: `${each.period}: ${money(each.monthly)}` })),
    { label: "now", value: amount(report.now.monthly), title: `Last 30 days: ${money(report.now.monthly)}`, soft: true },
  ];
  return <Bars height={height} label="Cost of each month" format={money} points={bars} />;
}
