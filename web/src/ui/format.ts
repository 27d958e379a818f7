/** Numbers, sizes, times and amounts as text. */

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

export function formatNumber(value: number): string {
  return value.toLocaleString("en-US");
}

export function formatCount(value: number): string {
  return value.toLocaleString("en-US", { notation: value >= 100_000 ? "compact" : "standard", maximumFractionDigits: 1 });
}

export function plural(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
}

// Characters that would reorder or hide the text around them.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** A name with its invisible characters written out, so that it cannot look like another. */
export function visible(name: string): string {
  return name.replace(INVISIBLE, (char) => `\u27e8U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}

/** An amount; the API sends exact amounts as text if a number could not hold them. */
export function amount(value: unknown): number {
  return typeof value === "number" ? value : Number(value ?? 0);
}

export function formatMoney(value: unknown, currency: string): string {
  const number = amount(value);
  if (number !== 0 && Math.abs(number) < 0.005) return `<${formatMoney(0.01, currency)}`;
  const digits = number === 0 || Math.abs(number) >= 100 ? 0 : 2;
  return number.toLocaleString("en-US", {
    style: "currency",
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

export function formatShare(part: number, whole: number): string {
  if (whole === 0) return "–";
  const share = (100 * part) / whole;
  return `${share > 0 && share < 1 ? "<1" : Math.round(share)}%`;
}

export function formatPercent(change: number): string {
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${Math.abs(change).toFixed(1)}%`;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function formatAge(at: string, now: number = Date.now()): string {
  const age = now - Date.parse(at);
  if (age < 0) return `in ${span(-age)}`;
  if (age < MINUTE) return "just now";
  return `${span(age)} ago`;
}

function span(ms: number): string {
  if (ms < HOUR) return `${Math.max(1, Math.round(ms / MINUTE))} min`;
  if (ms < DAY) return `${Math.round(ms / HOUR)} h`;
  if (ms < 60 * DAY) return plural(Math.round(ms / DAY), "day");
  return `${Math.round(ms / (30 * DAY))} months`;
}

export function formatDay(at: string): string {
  return new Date(at).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
}

export function formatTime(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 16)}`;
}

/** The last part of a URN, which people know a dataset by. */
export function shortName(urn: string): string {
  const path = urn.replace(/\?env=.*$/, "").replace(/^lumos:\/\/[^/]*\//, "");
  const last = path.split("/").filter(Boolean).at(-1) ?? urn;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** A sentence of the server with names instead of URNs, and with the clause of SQL that people write. */
export function withNames(text: string): string {
  return text.replace(/\bin PROJECTION\b/g, "in SELECT").replace(/lumos:\/\/[^\s,;'"]+/g, (urn) => {
    const end = /[.:)]+$/.exec(urn)?.[0] ?? "";
    return visible(shortName(urn.slice(0, urn.length - end.length))) + end;
  });
}

/** The first day of a month, some months back, as YYYY-MM. */
export function monthBack(back: number, now: Date = new Date()): string {
  const day = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1));
  return day.toISOString().slice(0, 7);
}

export function listed(names: readonly string[], most = 3): string {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
}
