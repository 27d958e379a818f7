/** How long people search until they open a dataset; kept in this browser only. */

const KEY = "lumos.find-times";
const MOST = 50;
// A search that was resumed hours later is not counted.
const LONGEST_SECONDS = 1800;

let begun: number | null = null;

export function searchBegins(now: number = performance.now()): void {
  begun ??= now;
}

export function searchEnds(now: number = performance.now()): void {
  if (begun === null) return;
  const seconds = (now - begun) / 1000;
  begun = null;
  if (seconds > LONGEST_SECONDS) return;
  localStorage.setItem(KEY, JSON.stringify([...times(), Math.round(seconds * 10) / 10].slice(-MOST)));
}

function times(): number[] {
  try {
    const saved: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(saved) ? saved.filter((each) => typeof each === "number") : [];
  } catch {
    return [];
  }
}

export function medianFindSeconds(): { seconds: number; count: number } | null {
  const sorted = times().sort((one, two) => one - two);
  const middle = sorted[Math.floor(sorted.length / 2)];
  return middle === undefined ? null : { seconds: middle, count: sorted.length };
}
