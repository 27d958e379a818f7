/** Which features the server has; pages draw no panel of others. */
import { useQuery } from "@tanstack/react-query";
import { identity } from "./queries";

/** `impact` and `jobs` need a server; the others are the switches under `features` in lumos.yaml. */
export type Feature = "cost_attribution" | "impact" | "jobs" | "lineage" | "releases" | "schema_tracking" | "usage";

/** Whether a feature is on: false until the server has said so. */
export function useFeature(name: Feature): boolean {
  const who = useQuery(identity());
  return who.data !== undefined && isOn(name, who.data.disabled ?? []);
}

export function isOn(name: Feature, disabled: readonly string[]): boolean {
  // Impact follows lineage, and is disabled with it.
  return !disabled.includes(name) && !(name === "impact" && disabled.includes("lineage"));
}
