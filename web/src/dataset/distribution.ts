/** Shapes of distributions, from the quantiles and frequent values of profiles. */
import type { ColumnProfile } from "../api/dataset";

export interface Bin {
  /** From 0 to 1 over the range of values. */
  from: number;
  to: number;
  /** Relative to the highest bin. */
  height: number;
  label: string;
}

function position(text: string): number {
  const number = Number(text);
  return Number.isNaN(number) ? Date.parse(text) : number;
}

/** The bins between quantiles, each as high as its values are dense; empty if they are unknown. */
export function quantileBins({ minimum, maximum, quantiles }: ColumnProfile): Bin[] {
  if (minimum === null || minimum === undefined || maximum === null || maximum === undefined) return [];
  const known = Object.entries(quantiles ?? {}).map(([share, value]) => ({ share: Number(share), text: value, at: position(value) }));
  const points = [{ share: 0, text: minimum, at: position(minimum) }, ...known, { share: 1, text: maximum, at: position(maximum) }]
    .filter((each) => Number.isFinite(each.at) && Number.isFinite(each.share))
    .sort((one, two) => one.share - two.share);
  const first = points[0];
  const last = points.at(-1);
  if (known.length === 0 || first === undefined || last === undefined || last.at <= first.at) return [];
  const width = last.at - first.at;
  const bins = points.slice(1).flatMap((point, index) => {
    const before = points[index] ?? first;
    const from = (before.at - first.at) / width;
    // Equal quantiles are one value with many rows: a thin bin, rather than an infinitely high one.
    const to = Math.max((point.at - first.at) / width, from + 0.01);
    const share = point.share - before.share;
    return share <= 0 ? [] : [{ from, to, height: share / (to - from), label: `${Math.round(100 * share)}% from ${before.text} to ${point.text}` }];
  });
  return scaled(bins);
}

/** The most frequent values, as high as their share of the rows. */
export function topBins({ top }: ColumnProfile): Bin[] {
  const values = (top ?? []).slice(0, 10);
  return scaled(values.map((each, index) => ({ from: index / values.length, to: (index + 0.8) / values.length, height: each.count, label: `${each.value}: ${each.count.toLocaleString("en-US")}` })));
}

function scaled(bins: Bin[]): Bin[] {
  const most = Math.max(...bins.map((each) => each.height), 0);
  return most === 0 ? [] : bins.map((each) => ({ ...each, height: each.height / most }));
}

export function distribution(profile: ColumnProfile): Bin[] {
  const bins = quantileBins(profile);
  return bins.length > 0 ? bins : topBins(profile);
}
