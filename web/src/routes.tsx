/** Every address of the page. The server lists the same paths in server/page.py. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, type RouterHistory } from "@tanstack/react-router";
import type { Choice } from "./search/rules";
import { Shell } from "./shell";
import { Empty, Problem } from "./ui/parts";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <div className="page"><Empty>There is no such page.</Empty></div>,
  errorComponent: ({ error }) => <div className="page"><Problem error={error} /></div>,
});

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;
const texts = (value: unknown): string[] | undefined => {
  const list = (Array.isArray(value) ? value : [value]).map(text).filter((each) => each !== undefined);
  return list.length === 0 ? undefined : list;
};

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("./home/page"), "HomePage"),
});

const search = createRoute({
  getParentRoute: () => root,
  path: "/search",
  validateSearch: (given: Record<string, unknown>): { q?: string } & Choice => ({
    q: text(given.q),
    platform: text(given.platform),
    format: text(given.format),
    owner: text(given.owner),
    tag: text(given.tag),
    domain: text(given.domain),
    term: text(given.term),
    freshness: text(given.freshness),
    cost: text(given.cost),
  }),
  component: lazyRouteComponent(() => import("./search/page"), "SearchPage"),
});

const dataset = createRoute({
  getParentRoute: () => root,
  path: "/dataset",
  validateSearch: (given: Record<string, unknown>): { urn: string; tab?: string; from?: string; to?: string } => ({
    urn: text(given.urn) ?? "",
    tab: text(given.tab),
    from: text(given.from),
    to: text(given.to),
  }),
  component: lazyRouteComponent(() => import("./dataset/page"), "DatasetPage"),
});

const lineage = createRoute({
  getParentRoute: () => root,
  path: "/lineage",
  validateSearch: (given: Record<string, unknown>): { urn?: string; column?: string; depth?: string; side?: string } => ({
    urn: text(given.urn),
    column: text(given.column),
    depth: text(given.depth),
    side: text(given.side),
  }),
  component: lazyRouteComponent(() => import("./lineage/page"), "LineagePage"),
});

const whatIf = createRoute({
  getParentRoute: () => root,
  path: "/what-if",
  validateSearch: (given: Record<string, unknown>): { urn?: string; drop?: string[]; rename?: string[]; change?: string[]; off?: string[] } => ({
    urn: text(given.urn),
    drop: texts(given.drop),
    rename: texts(given.rename),
    change: texts(given.change),
    off: texts(given.off),
  }),
  component: lazyRouteComponent(() => import("./whatif/page"), "WhatIfPage"),
});

const cost = createRoute({
  getParentRoute: () => root,
  path: "/cost",
  validateSearch: (given: Record<string, unknown>): { by?: string } => ({ by: text(given.by) }),
  component: lazyRouteComponent(() => import("./cost/page"), "CostPage"),
});

const operations = createRoute({
  getParentRoute: () => root,
  path: "/operations",
  validateSearch: (given: Record<string, unknown>): { tab?: string; job?: string; result?: string } => ({ tab: text(given.tab), job: text(given.job), result: text(given.result) }),
  component: lazyRouteComponent(() => import("./operations/page"), "OperationsPage"),
});

/** The router; static sites have their addresses behind a # that any web server ignores. */
export function makeRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: root.addChildren([home, search, dataset, lineage, whatIf, cost, operations]),
    defaultPreload: "intent",
    scrollRestoration: true,
    ...(history === undefined ? {} : { history }),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
