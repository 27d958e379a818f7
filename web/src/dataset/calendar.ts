/** A calendar of partitions: weeks as columns, days as rows. */

export interface Day {
  day: string;
  partitions: number;
  files: number;
  bytes: number;
  rows: number | null;
}

export interface Cell {
  day: string;
  week: number;
  weekday: number;
  /** The day's sums; null for a missing day. */
  sums: Day | null;
}

const DAY = 86_400_000;
const MAX_WEEKS = 53;

/** The cells of the latest year of days with data, Monday first, and the first day of each month. */
export function calendar(days: readonly Day[], missing: readonly string[]): { cells: Cell[]; weeks: number; months: { week: number; label: string }[] } {
  const sums = new Map(days.map((each) => [each.day, each]));
  const all = [...sums.keys(), ...missing].sort();
  const last = all.at(-1);
  if (last === undefined) return { cells: [], weeks: 0, months: [] };
  const monday = (time: number) => time - ((new Date(time).getUTCDay() + 6) % 7) * DAY;
  const end = monday(Date.parse(last));
  const start = Math.max(monday(Date.parse(all[0] ?? last)), end - (MAX_WEEKS - 1) * 7 * DAY);
  const cells = all.filter((day) => Date.parse(day) >= start).map((day) => {
    const time = Date.parse(day);
    return { day, week: Math.round((monday(time) - start) / (7 * DAY)), weekday: (new Date(time).getUTCDay() + 6) % 7, sums: sums.get(day) ?? null };
  });
  const weeks = Math.round((end - start) / (7 * DAY)) + 1;
  const months: { week: number; label: string }[] = [];
  for (let week = 0; week < weeks; week += 1) {
    const label = new Date(start + week * 7 * DAY).toLocaleDateString("en-GB", { month: "short", timeZone: "UTC" });
    if (months.at(-1)?.label !== label) months.push({ week, label });
  }
  return { cells, weeks, months };
}

/** The level of a value from 1 to 4, by its rank among all: a few huge days do not hide the others. */
export function levels(values: readonly number[]): (value: number) => number {
  const sorted = [...values].sort((one, two) => one - two);
  const bounds = [0.25, 0.5, 0.75].map((share) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return (value) => 1 + bounds.filter((bound) => value > bound).length;
}
