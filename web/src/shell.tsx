/** The frame of every page: navigation, the search field, who is signed in. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { ApiError, dataTime, setToken, token } from "./api/client";
import { isOn } from "./api/features";
import { hasPrices, identity } from "./api/queries";
import { searchBegins } from "./home/timing";
import icon from "./icon.svg";
import { formatTime } from "./ui/format";
import { applyTheme, currentTheme, type Theme } from "./ui/theme";
import { Problem } from "./ui/parts";

const stroke = { fill: "none", stroke: "currentColor", strokeWidth: 1.6, strokeLinecap: "round", strokeLinejoin: "round" } as const;
const ICONS = {
  home: <path {...stroke} d="M2.5 7.5 8 2.8l5.5 4.7V13a.5.5 0 0 1-.5.5H3a.5.5 0 0 1-.5-.5z" />,
  search: <path {...stroke} d="M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3 3" />,
  lineage: <path {...stroke} d="M2 4h3.5M2 12h3.5M10.5 8H14M5.5 2.5v3M5.5 10.5v3M5.5 4c3 0 2 4 5 4s-2 4-5 4M10.5 6.5v3" />,
  whatIf: <path {...stroke} d="M8 2v3.5M8 5.5 4 9v4.5M8 5.5 12 9v4.5M6.4 3.6 8 2l1.6 1.6" />,
  cost: <path {...stroke} d="M2.5 13.5V8.5h3v5M6.5 13.5v-11h3v11M10.5 13.5V6h3v7.5" />,
  operations: <path {...stroke} d="M2.5 4h6M11 4h2.5M2.5 8h2M7 8h6.5M2.5 12h7M12 12h1.5M9.7 2.7v2.6M5.7 6.7v2.6M10.7 10.7v2.6" />,
};

const LINKS = [
  ["/", "Home", ICONS.home],
  ["/search", "Search", ICONS.search],
  ["/lineage", "Lineage", ICONS.lineage],
  ["/what-if", "What-if", ICONS.whatIf],
  ["/cost", "Cost", ICONS.cost],
  ["/operations", "Operations", ICONS.operations],
] as const;

export function Shell() {
  const who = useQuery(identity());
  if (who.isError && who.error instanceof ApiError && [401, 403].includes(who.error.status)) {
    return <SignIn problem={token() === null ? undefined : who.error.message} />;
  }
  if (who.isError) return <Centred><Problem error={who.error} /></Centred>;
  if (who.data === undefined) return null;
  return <Frame name={who.data.name} role={who.data.role} disabled={who.data.disabled ?? []} version={who.data.version} />;
}

function Centred({ children }: { children: ReactNode }) {
  return <div className="signin"><div>{children}</div></div>;
}

function SignIn({ problem }: { problem?: string }) {
  const [value, setValue] = useState("");
  const queries = useQueryClient();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setToken(value.trim());
    void queries.resetQueries();
  };
  return (
    <main className="signin">
      <form onSubmit={submit}>
        <div className="brand" style={{ padding: 0 }}><img src={icon} alt="" />Lumos</div>
        <h1>Sign in</h1>
        <p className="muted">This server needs a token. It is kept until you close the tab.</p>
        <label className="stack" style={{ gap: 4 }}>
          <span className="small">Token</span>
          <input type="password" autoComplete="off" autoFocus value={value} onChange={(event) => { setValue(event.target.value); }} />
        </label>
        {problem === undefined ? null : <div className="problem" role="alert">{problem}</div>}
        <button type="submit" className="button primary" disabled={value.trim() === ""}>Sign in</button>
        <p className="small faint">An administrator creates one with <code>lumos token create NAME --role read</code></p>
      </form>
    </main>
  );
}

function Frame({ name, role, disabled, version }: { name: string; role: string; disabled: readonly string[]; version: string }) {
  const priced = useQuery({ ...hasPrices(), enabled: isOn("cost_attribution", disabled) });
  const [theme, setTheme] = useState<Theme>(currentTheme());
  const queries = useQueryClient();
  const hidden = new Set<string>();
  if (!isOn("cost_attribution", disabled) || priced.data === false) hidden.add("/cost");
  if (!isOn("lineage", disabled)) hidden.add("/lineage");
  if (!isOn("impact", disabled)) hidden.add("/what-if");
  const asOf = dataTime();
  const other: Theme = theme === "dark" ? "light" : "dark";
  return (
    <div className="shell">
      <nav className="rail" aria-label="Pages">
        <div className="brand"><img src={icon} alt="" /><span className="label">Lumos</span></div>
        {LINKS.filter(([path]) => !hidden.has(path)).map(([path, label, picture]) => (
          <Link key={path} to={path} className="item" activeOptions={{ exact: path === "/", includeSearch: false }} aria-label={label} title={label}>
            <svg viewBox="0 0 16 16" aria-hidden="true">{picture}</svg>
            <span className="label">{label}</span>
          </Link>
        ))}
        <div className="foot">
          {asOf === null
            ? <span className="label clip" title={`${name}, role ${role}`}>{name} · {role}</span>
            : <span className="label" title="A static site shows the data of the time at which it was written.">As of {formatTime(asOf)} UTC</span>}
          <span className="label">Version {version}</span>
        </div>
      </nav>
      <div className="main">
        <div className="topbar">
          <Find />
          <span className="grow" />
          {token() === null ? null : <button type="button" className="button nowrap" title={`${name}, role ${role}`} onClick={() => { setToken(null); void queries.resetQueries(); }}>Sign out</button>}
          <button type="button" className="button" aria-label={`Use the ${other} theme`} title={`Use the ${other} theme`} onClick={() => { setTheme(other); applyTheme(other, true); }}>
            <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true">
              {theme === "dark"
                ? <path {...stroke} d="M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6z" />
                : <path {...stroke} d="M13.5 9.8A5.8 5.8 0 0 1 6.2 2.5a5.8 5.8 0 1 0 7.3 7.3z" />}
            </svg>
          </button>
        </div>
        <main><Outlet /></main>
      </div>
    </div>
  );
}

/** The search field: `/` focuses it from anywhere, and results follow what is typed. */
function Find() {
  const field = useRef<HTMLInputElement>(null);
  const navigate = useNavigate();
  const location = useRouterState({ select: (state) => state.location });
  const onSearch = location.pathname === "/search";
  const query = onSearch ? ((location.search as { q?: string }).q ?? "") : "";
  const [value, setValue] = useState(query);
  useEffect(() => { setValue(query); }, [query]);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key === "/" && !["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) {
        event.preventDefault();
        field.current?.focus();
        field.current?.select();
      }
    };
    window.addEventListener("keydown", focus);
    return () => { window.removeEventListener("keydown", focus); };
  }, []);
  const type = (text: string) => {
    searchBegins();
    setValue(text);
    void navigate({ to: "/search", search: (previous) => ({ ...(onSearch ? previous : {}), q: text === "" ? undefined : text }) as never, replace: onSearch });
  };
  return (
    <div className="find">
      <input
        ref={field}
        type="search"
        placeholder="Search datasets, columns, owners"
        aria-label="Search datasets"
        value={value}
        onChange={(event) => { type(event.target.value); }}
        onKeyDown={(event) => {
          if (["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) {
            event.preventDefault();
            window.dispatchEvent(new CustomEvent("lumos-search-key", { detail: event.key }));
          }
          if (event.key === "Escape") field.current?.blur();
        }}
      />
      {value === "" ? <kbd aria-hidden="true">/</kbd> : null}
    </div>
  );
}
