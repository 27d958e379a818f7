/** The parts that all pages are made of. */
import { Link } from "@tanstack/react-router";
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { ApiError } from "../api/client";
import { formatAge, formatTime, shortName, visible } from "./format";

export type VerdictName = "breaking" | "undetermined" | "compatible" | "informational";

const SIGNS: Record<VerdictName, ReactNode> = {
  breaking: <path d="M2 2l8 8M10 2l-8 8" stroke="currentColor" strokeWidth="2.2" strokeLinecap="round" />,
  undetermined: <path d="M6 1.2 11 10.5H1z" fill="none" stroke="currentColor" strokeWidth="1.7" strokeLinejoin="round" />,
  compatible: <path d="M1.5 6.5 4.7 9.7 10.5 2.5" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round" />,
  informational: <circle cx="6" cy="6" r="2.6" fill="currentColor" />,
};

export function asVerdict(text: string | null | undefined): VerdictName {
  const lower = (text ?? "informational").toLowerCase();
  return lower in SIGNS ? (lower as VerdictName) : "informational";
}

/** A verdict as colour, sign and word, so that it can be read without colours. */
export function Verdict({ of, label }: { of: string | null | undefined; label?: string }) {
  const verdict = asVerdict(of);
  return (
    <span className={`verdict ${verdict}`}>
      <svg viewBox="0 0 12 12" aria-hidden="true">{SIGNS[verdict]}</svg>
      {label ?? verdict}
    </span>
  );
}

export function Panel({ title, aside, children, flush = true }: { title?: ReactNode; aside?: ReactNode; children: ReactNode; flush?: boolean }) {
  return (
    <section className="panel">
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {aside === undefined ? null : <span className="small muted">{aside}</span>}
        </header>
      )}
      {flush ? children : <div className="body">{children}</div>}
    </section>
  );
}

export function Empty({ children, command }: { children: ReactNode; command?: string }) {
  return (
    <div className="empty">
      <span>{children}</span>
      {command === undefined ? null : <code>{command}</code>}
    </div>
  );
}

export function Problem({ error }: { error: unknown }) {
  const text = error instanceof Error ? error.message : String(error);
  return (
    <div className="problem" role="alert">
      {text}
      {error instanceof ApiError && error.status >= 500 && error.requestId !== undefined ? (
        <div className="small muted">Request {error.requestId}</div>
      ) : null}
    </div>
  );
}

export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <div className="stack" style={{ padding: 14 }} aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className="skeleton" style={{ width: `${92 - ((index * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

/** The content of a query: a placeholder first, then its data or an error. */
export function Loaded<T>({ query, lines, children }: { query: UseQueryResult<T>; lines?: number; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.isError) return <div style={{ padding: 12 }}><Problem error={query.error} /></div>;
  return <Loading lines={lines} />;
}

export function DatasetLink({ urn, name, className = "" }: { urn: string; name?: string; className?: string }) {
  return (
    <Link to="/dataset" search={{ urn }} title={visible(urn)} className={className}>
      <bdi className="name">{visible(name ?? shortName(urn))}</bdi>
    </Link>
  );
}

export function When({ at }: { at: string | null | undefined }) {
  if (at === null || at === undefined) return <span className="faint">never</span>;
  return (
    <time dateTime={at} title={`${formatTime(at)} UTC`} className="nowrap">
      {formatAge(at)}
    </time>
  );
}

export function Tag({ name, onRemove }: { name: string; onRemove?: () => void }) {
  return (
    <span className={name.toLowerCase() === "pii" ? "tag pii" : "tag"} title={name}>
      <bdi className="clip">{name}</bdi>
      {onRemove === undefined ? null : (
        <button type="button" aria-label={`Remove ${name}`} onClick={onRemove}>×</button>
      )}
    </span>
  );
}

export function Owners({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <span className="faint">no owner</span>;
  return <bdi className="name">{names.join(", ")}</bdi>;
}

export function Tabs<T extends string>({ value, options, onChange, label }: { value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void; label: string }) {
  const list = useRef<HTMLDivElement>(null);
  // In a narrow window the chosen tab may be beyond the edge.
  useEffect(() => {
    const chosen = list.current?.querySelector<HTMLElement>("[aria-selected=true]");
    if (list.current !== null && chosen) list.current.scrollLeft = chosen.offsetLeft - list.current.offsetLeft - (list.current.clientWidth - chosen.offsetWidth) / 2;
  }, [value, options.length]);
  return (
    <div ref={list} className="tabs" role="tablist" aria-label={label}>
      {options.map(([key, text]) => (
        <button key={key} type="button" role="tab" aria-selected={key === value} onClick={() => { onChange(key); }}>
          {text}
        </button>
      ))}
    </div>
  );
}

export function Segmented<T extends string>({ value, options, onChange, label }: { value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void; label: string }) {
  return (
    <div className="segmented" role="group" aria-label={label}>
      {options.map(([key, text]) => (
        <button key={key} type="button" aria-pressed={key === value} onClick={() => { onChange(key); }}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** A change of a schema: what it was, what it is, and the verdict. */
export function ChangeText({ before, after, kind, path }: { before: unknown; after: unknown; kind: string; path: string }) {
  const text = (value: unknown) => (Array.isArray(value) ? value.join(", ") : String(value));
  return (
    <span className="wrap">
      <span className="muted">{kind.replaceAll("_", " ")} </span>
      {path === "" ? null : <code className="name"><bdi>{path}</bdi></code>}{" "}
      {before === null || before === undefined ? null : <code className={after === null || after === undefined ? "was" : "type"}>{text(before)}</code>}
      {before !== null && before !== undefined && after !== null && after !== undefined ? <span className="faint"> → </span> : null}
      {after === null || after === undefined ? null : <code className="type">{text(after)}</code>}
    </span>
  );
}
