/** Search as you type, with facets; arrows and Enter work from the search field. */
import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { dataNow, type Schemas } from "../api/client";
import { useFeature } from "../api/features";
import * as ask from "../api/queries";
import { amount, formatNumber, visible } from "../ui/format";
import { Empty, Loading, Owners, Problem, Tag, When } from "../ui/parts";
import { FACETS, PAGE_FACETS, costClass, countFacet, filterHits, folderOf, splitAtWords, type Facet, type Hit } from "./rules";

const route = getRouteApi("/search");
const LIMIT = 200;
// More results for the facets that the page itself filters by.
const FILTER_LIMIT = 1000;
const SAVED = "lumos.searches";

export function SearchPage() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const text = search.q ?? "";
  const now = useMemo(() => Math.floor(dataNow() / 3_600_000) * 3_600_000, []);
  const limit = PAGE_FACETS.some((facet) => search[facet] !== undefined) ? FILTER_LIMIT : LIMIT;
  const filters = { platform: search.platform, owner: search.owner, tag: search.tag, format: search.format };
  // An empty query lists all datasets; this list has neither owners nor tags.
  const isList = text === "" && search.owner === undefined && search.tag === undefined;
  const found = useQuery({ ...ask.search({ text, ...filters, limit }), enabled: !isList });
  const all = useQuery({ ...ask.datasets({ limit: 1000, platform: search.platform, format: search.format }), enabled: isList });
  const costs = useCostClasses();
  const results = useMemo<Hit[]>(() => {
    if (!isList) {
      return (found.data?.results ?? NO_RESULTS).map((each) => ({
        ...each, format: each.format ?? null, location: each.location ?? null, description: each.description ?? null,
        owners: each.owners ?? [], tags: each.tags ?? [], fields: each.fields ?? [], schemaVersion: each.schema_version ?? null, modified: each.last_modified ?? null,
        domain: each.domain ?? null, terms: each.terms ?? [], cost: costs?.(each.urn) ?? null,
      }));
    }
    return (all.data?.datasets ?? []).map((each) => ({
      urn: each.urn, name: each.name, platform: each.platform, format: each.format ?? null, location: null, description: null,
      owners: [], tags: [], fields: [], schemaVersion: each.schema_version, modified: null, domain: null, terms: [], cost: costs?.(each.urn) ?? null,
    }));
  }, [isList, found.data, all.data, costs]);
  const hits = useMemo(() => filterHits(results, search, now), [results, search, now]);
  const query = isList ? all : found;
  const [current, setCurrent] = useState(0);
  useEffect(() => { setCurrent(0); }, [search]);
  useEffect(() => {
    const press = (event: Event) => {
      const key = (event as CustomEvent<string>).detail;
      if (key === "ArrowDown") setCurrent((index) => Math.min(index + 1, Math.max(0, hits.length - 1)));
      if (key === "ArrowUp") setCurrent((index) => Math.max(index - 1, 0));
      const hit = hits[current];
      if (key === "Enter" && hit !== undefined) void navigate({ to: "/dataset", search: { urn: hit.urn } });
    };
    window.addEventListener("lumos-search-key", press);
    return () => { window.removeEventListener("lumos-search-key", press); };
  }, [hits, current, navigate]);
  const toggle = (facet: Facet, value: string) => {
    void navigate({ to: "/search", search: { ...search, [facet]: search[facet] === value ? undefined : value } });
  };
  const isFiltered = limit === FILTER_LIMIT;
  const total = isList || isFiltered ? hits.length : (found.data?.total ?? 0);
  const hasMore = isList ? all.data?.has_more === true : isFiltered ? (found.data?.total ?? 0) > FILTER_LIMIT : found.data?.all_counted === false;
  return (
    <div className="page">
      <header className="row spread wrap">
        <h1>{text === "" ? (FACETS.some(([facet]) => search[facet] !== undefined) ? "Datasets" : "All datasets") : <>Results for <bdi>“{text}”</bdi></>}</h1>
        <span className="row">
          <span className="small muted" aria-live="polite">
            {query.data === undefined ? "" : `${formatNumber(total)}${hasMore ? "+" : ""} ${total === 1 ? "dataset" : "datasets"}`}
          </span>
          <SavedSearches text={text} search={search} />
        </span>
      </header>
      <div className="search">
        <div className="facets" aria-label="Filters">
          {FACETS.map(([facet, label]) => {
            const counts = countFacet(hits, facet, now);
            const chosen = search[facet];
            if (chosen !== undefined && !counts.has(chosen)) counts.set(chosen, 0);
            if (counts.size === 0) return null;
            return (
              <div className="facet" key={facet}>
                <h3>{label}</h3>
                {[...counts.entries()].slice(0, 8).map(([value, count]) => (
                  <button type="button" key={value} aria-pressed={chosen === value} onClick={() => { toggle(facet, value); }}>
                    <bdi className="clip">{value}</bdi><span className="faint num">{count === 0 ? "" : formatNumber(count)}</span>
                  </button>
                ))}
              </div>
            );
          })}
          {!isList && (found.data?.total ?? 0) > limit ? <p className="small faint">Counts are of the best {formatNumber(limit)} results.</p> : null}
          {isList && all.data?.has_more === true ? <p className="small faint">Counts are of the first 1,000 datasets.</p> : null}
        </div>
        <section className="panel" aria-label="Results">
          {query.isError ? <div style={{ padding: 12 }}><Problem error={query.error} /></div> : null}
          {query.data === undefined && !query.isError ? <Loading lines={8} /> : null}
          {query.data !== undefined && hits.length === 0
            ? (text === "" ? <Empty command="lumos ingest PATH">The store is empty.</Empty> : (
              <Empty>
                No dataset matches <bdi>“{text}”</bdi>.
                {found.data?.suggestion ? <> Did you mean <Link to="/search" search={{ q: found.data.suggestion }}><b>{found.data.suggestion}</b></Link>?</> : null}
              </Empty>
            ))
            : null}
          {hits.length > 0 ? <Hits hits={hits} words={text.split(/\s+/).filter(Boolean)} current={current} /> : null}
        </section>
      </div>
    </div>
  );
}

const NO_RESULTS: Schemas["SearchResult"][] = [];

/** The class of a dataset's cost; null if no prices are known. */
function useCostClasses(): ((urn: string) => string | null) | null {
  const hasCosts = useFeature("cost_attribution");
  const priced = useQuery({ ...ask.hasPrices(), enabled: hasCosts });
  const top = useQuery({ ...ask.costTop({ limit: 1000, ranked_by: "own" }), enabled: priced.data === true });
  return useMemo(() => {
    if (top.data === undefined) return null;
    const { datasets, currency } = top.data;
    const costs = new Map(datasets.map((each) => [each.urn, amount(each.own)]));
    // Datasets that are not in the list cost no more than the last one in it.
    const rest = datasets.length < 1000 ? null : amount(datasets.at(-1)?.own);
    return (urn: string) => {
      const cost = costs.get(urn) ?? rest;
      return cost === null ? null : costClass(cost, currency);
    };
  }, [top.data]);
}

function Hits({ hits, words, current }: { hits: readonly Hit[]; words: readonly string[]; current: number }) {
  const list = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: hits.length,
    getScrollElement: () => list.current,
    estimateSize: () => (words.length === 0 ? 44 : 84),
    overscan: 12,
    getItemKey: (index) => hits[index]?.urn ?? index,
  });
  useEffect(() => { if (hits.length > 0) virtual.scrollToIndex(current); }, [current, virtual, hits.length]);
  return (
    <div ref={list} style={{ maxHeight: "calc(100vh - 170px)", overflow: "auto" }} tabIndex={-1}>
      <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map((item) => {
          const hit = hits[item.index];
          if (hit === undefined) return null;
          return (
            <div key={item.key} data-index={item.index} ref={virtual.measureElement} style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${item.start}px)` }}>
              <Link to="/dataset" search={{ urn: hit.urn }} className={item.index === current ? "hit current" : "hit"}>
                <div className="row spread">
                  <span className="row grow" style={{ alignItems: "baseline" }}>
                    <bdi className="title name clip"><Marked text={visible(hit.name)} words={words} /></bdi>
                    <span className="small faint clip">{[hit.platform, hit.format, words.length === 0 ? folderOf(hit.urn) : null].filter(Boolean).join(" · ")}</span>
                  </span>
                  <span className="row small muted nowrap">
                    {hit.tags.slice(0, 3).map((tag) => <Tag key={tag} name={tag} />)}
                    <span className="mono optional">{hit.schemaVersion}</span>
                    {hit.modified === null ? null : <span className="optional"><When at={hit.modified} /></span>}
                  </span>
                </div>
                {words.length === 0 ? null : (
                  <>
                    <div className="small muted clip"><bdi><Marked text={visible(hit.description ?? hit.location ?? hit.urn)} words={words} /></bdi></div>
                    <div className="small row" style={{ gap: 12 }}>
                      <span className="muted nowrap"><Owners names={hit.owners} /></span>
                      {hit.fields.length === 0 ? null : (
                        <span className="clip">
                          <span className="faint">columns </span>
                          {hit.fields.slice(0, 6).map((field, index) => <code key={field}>{index === 0 ? "" : ", "}<Marked text={field} words={words} /></code>)}
                        </span>
                      )}
                    </div>
                  </>
                )}
              </Link>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** A text with the words of the search marked. */
function Marked({ text, words }: { text: string; words: readonly string[] }) {
  const parts = splitAtWords(text, words);
  return <>{parts.map((part, index) => (part.hit ? <mark key={index}>{part.text}</mark> : <span key={index}>{part.text}</span>))}</>;
}

function SavedSearches({ text, search }: { text: string; search: Record<string, unknown> }) {
  const [saved, setSaved] = useState<{ name: string; search: Record<string, unknown> }[]>(() => {
    try {
      return JSON.parse(localStorage.getItem(SAVED) ?? "[]") as { name: string; search: Record<string, unknown> }[];
    } catch {
      return [];
    }
  });
  const navigate = useNavigate();
  const keep = (list: { name: string; search: Record<string, unknown> }[]) => {
    setSaved(list);
    localStorage.setItem(SAVED, JSON.stringify(list));
  };
  const name = [text, ...FACETS.map(([facet]) => search[facet])].filter(Boolean).join(" · ");
  const isSaved = saved.some((each) => each.name === name);
  return (
    <>
      {saved.length === 0 ? null : (
        <select aria-label="Saved searches" value="" onChange={(event) => {
          const chosen = saved.find((each) => each.name === event.target.value);
          if (chosen !== undefined) void navigate({ to: "/search", search: chosen.search as never });
        }}>
          <option value="">Saved searches</option>
          {saved.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}
        </select>
      )}
      {name === "" ? null : (
        <button type="button" className="button small" onClick={() => { keep(isSaved ? saved.filter((each) => each.name !== name) : [...saved, { name, search }]); }}>
          {isSaved ? "Forget this search" : "Save this search"}
        </button>
      )}
    </>
  );
}
