/** One function per question that pages ask; TanStack Query keeps the answers. */
import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { DatasetEntry } from "./dataset";

const MINUTE = 60_000;

export const identity = () =>
  queryOptions({
    queryKey: ["identity"],
    queryFn: () => unwrap(api.GET("/api/v1/identity")),
    staleTime: 5 * MINUTE,
    retry: false,
  });

export const overview = () =>
  queryOptions({ queryKey: ["overview"], queryFn: () => unwrap(api.GET("/api/v1/overview")) });

export const trends = () =>
  queryOptions({ queryKey: ["trends"], queryFn: () => unwrap(api.GET("/api/v1/overview/trends")), staleTime: 10 * MINUTE });

export const changes = (query: { since?: string; breaking?: boolean; dataset?: string; limit?: number; types?: string[] }) =>
  queryOptions({
    queryKey: ["changes", query],
    queryFn: () => unwrap(api.GET("/api/v1/changes", { params: { query: query as never } })),
  });

export const jobs = (limit = 50) =>
  queryOptions({
    queryKey: ["jobs", limit],
    queryFn: () => unwrap(api.GET("/api/v1/jobs", { params: { query: { limit } } })),
    refetchInterval: 5_000,
  });

export const job = (id: number) =>
  queryOptions({
    queryKey: ["job", id],
    queryFn: () => unwrap(api.GET("/api/v1/jobs/show", { params: { query: { id } } })),
  });

export const search = (query: { text: string; platform?: string; owner?: string; tag?: string; format?: string; limit?: number }) =>
  queryOptions({
    queryKey: ["search", query],
    queryFn: () => unwrap(api.GET("/api/v1/search", { params: { query } })),
    placeholderData: (previous) => previous,
  });

export const datasets = (query: { limit?: number; platform?: string; format?: string; contains?: string }) =>
  queryOptions({
    queryKey: ["datasets", query],
    queryFn: () => unwrap(api.GET("/api/v1/datasets", { params: { query } })),
    placeholderData: (previous) => previous,
  });

export interface ShownDataset {
  state: string;
  dataset: DatasetEntry;
  etag: string | null;
}

export const dataset = (urn: string) =>
  queryOptions({
    queryKey: ["dataset", urn],
    queryFn: async (): Promise<ShownDataset> => {
      const answer = api.GET("/api/v1/datasets/show", { params: { query: { urn } } });
      const report = await unwrap(answer);
      const { response } = await answer;
      return {
        state: report.state,
        dataset: report.dataset as unknown as DatasetEntry,
        etag: response.headers.get("etag"),
      };
    },
  });

export const partitions = (dataset: string) =>
  queryOptions({
    queryKey: ["partitions", dataset],
    queryFn: () => unwrap(api.GET("/api/v1/datasets/partitions", { params: { query: { dataset } } })),
    retry: false,
  });

export const history = (name: string) =>
  queryOptions({
    queryKey: ["history", name],
    queryFn: () => unwrap(api.GET("/api/v1/schemas/history", { params: { query: { name } } })),
  });

export const diff = (before: string, after: string) =>
  queryOptions({
    queryKey: ["diff", before, after],
    queryFn: () => unwrap(api.GET("/api/v1/schemas/diff", { params: { query: { before, after } } })),
  });

export const usage = (dataset: string) =>
  queryOptions({
    queryKey: ["usage", dataset],
    queryFn: () => unwrap(api.GET("/api/v1/usage/show", { params: { query: { dataset } } })),
    retry: false,
  });

export const annotations = (dataset: string) =>
  queryOptions({
    queryKey: ["annotations", dataset],
    queryFn: () => unwrap(api.GET("/api/v1/annotations", { params: { query: { dataset } } })),
  });

export const lineage = (query: { dataset: string; column?: string; side?: "both" | "upstream" | "downstream"; depth?: number; limit?: number }) =>
  queryOptions({
    queryKey: ["lineage", query],
    queryFn: () => unwrap(api.GET("/api/v1/lineage/show", { params: { query: query as never } })),
    retry: false,
  });

export interface ProposedChange {
  dataset: string;
  change: string[];
  drop: string[];
  rename: string[];
}

export const impact = (body: ProposedChange) =>
  queryOptions({
    queryKey: ["impact", body],
    queryFn: () => unwrap(api.POST("/api/v1/impact", { body: body as never })),
    retry: false,
  });

export const hasPrices = () =>
  queryOptions({
    queryKey: ["cost", "configured"],
    queryFn: () => unwrap(api.GET("/api/v1/cost/configured")),
    retry: false,
  });

export const costTrend = (urn?: string) =>
  queryOptions({
    queryKey: ["cost", "trend", urn],
    queryFn: () => unwrap(api.GET("/api/v1/cost/trend", { params: { query: urn === undefined ? {} : { urn } } })),
    retry: false,
  });

export const costTop = (query: { limit?: number; ranked_by?: "own" | "retained" | "total"; period?: string }) =>
  queryOptions({
    queryKey: ["cost", "top", query],
    queryFn: () => unwrap(api.GET("/api/v1/cost/top", { params: { query } })),
    retry: false,
  });

export const costBy = (by: "team" | "domain" | "platform" | "tag", period?: string) =>
  queryOptions({
    queryKey: ["cost", "by", by, period],
    queryFn: () =>
      unwrap(api.GET("/api/v1/cost/by", { params: { query: { by, ...(period === undefined ? {} : { period }) } as never } })),
    retry: false,
  });

export const costReport = (urn: string) =>
  queryOptions({
    queryKey: ["cost", "report", urn],
    queryFn: () => unwrap(api.GET("/api/v1/cost/report", { params: { query: { urn } } })),
    retry: false,
  });

export const retire = (top: number) =>
  queryOptions({
    queryKey: ["cost", "retire", top],
    queryFn: () => unwrap(api.GET("/api/v1/cost/retire", { params: { query: { top } } })),
    retry: false,
  });

export const savings = (urns: string[]) =>
  queryOptions({
    queryKey: ["cost", "savings", urns],
    queryFn: () => unwrap(api.GET("/api/v1/cost/savings", { params: { query: { urns } as never } })),
    enabled: urns.length > 0,
    retry: false,
  });

export const schedules = () =>
  queryOptions({ queryKey: ["schedules"], queryFn: () => unwrap(api.GET("/api/v1/schedules")) });

export const releases = () =>
  queryOptions({ queryKey: ["releases"], queryFn: () => unwrap(api.GET("/api/v1/releases")) });

export const gateResults = () =>
  queryOptions({
    queryKey: ["gate"],
    queryFn: () => unwrap(api.GET("/api/v1/gate/results", { params: { query: { limit: 50 } } })),
  });

export const gateResult = (id: string) =>
  queryOptions({
    queryKey: ["gate", id],
    queryFn: () => unwrap(api.GET("/api/v1/gate/results/show", { params: { query: { id } } })),
  });

export const catalogs = () =>
  queryOptions({ queryKey: ["catalogs"], queryFn: () => unwrap(api.GET("/api/v1/catalogs")) });

export const owners = () =>
  queryOptions({ queryKey: ["owners"], queryFn: () => unwrap(api.GET("/api/v1/owners")), staleTime: MINUTE });

export const audit = () =>
  queryOptions({
    queryKey: ["audit"],
    queryFn: () => unwrap(api.GET("/api/v1/audit", { params: { query: { limit: 100 } } })),
    retry: false,
  });
