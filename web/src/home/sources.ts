/** Sources, and the problems of their last scans. */
import type { Schemas } from "../api/client";

/** The address of a source without the type that its id begins with. */
export function addressOf(source: string): string {
  return source.replace(/^[\w-]+:(?=\/|[\w+-]+:\/\/)/, "");
}

/** The problems of the job that scanned a source last; unknown for scans that were no job. */
export function problemsOfLastScan(
  source: Pick<Schemas["SourceOverview"], "source" | "last_scan">,
  jobs: readonly Pick<Schemas["JobSummary"], "id" | "finished_at" | "problems">[],
): { job: number; problems: string[] } | undefined {
  const address = addressOf(source.source);
  const isBelow = (problem: string) => problem.startsWith(address) && /^[/:]/.test(problem.slice(address.replace(/\/$/, "").length));
  const found = jobs
    // Older jobs are about an earlier scan.
    .filter((each) => each.finished_at !== null && each.finished_at !== undefined && Date.parse(each.finished_at) >= Date.parse(source.last_scan ?? "1970-01-01"))
    .map((each) => ({ job: each.id, problems: each.problems.filter(isBelow) }))
    .filter((each) => each.problems.length > 0);
  return found.sort((one, two) => two.job - one.job)[0];
}
