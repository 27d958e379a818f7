/** Editing in place, for roles that are allowed to; an edit is refused if the value has changed in the meantime. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ApiError, unwrap } from "../api/client";
import { dataset, identity, owners as knownOwners } from "../api/queries";
import { Owners, Problem, Tag } from "../ui/parts";
import { EtagChain } from "./etags";

export function useCanEdit(): boolean {
  const role = useQuery(identity()).data?.role;
  return role === "write" || role === "admin";
}

function useSaved(urn: string) {
  const queries = useQueryClient();
  return () => Promise.all([
    queries.invalidateQueries({ queryKey: ["dataset", urn] }),
    queries.invalidateQueries({ queryKey: ["annotations"] }),
    queries.invalidateQueries({ queryKey: ["overview"] }),
  ]);
}

const written = new EtagChain();

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Send an edit of the dataset that the page shows; own edits since then are no conflict. */
async function send<T>(shown: string | null, request: (headers: Record<string, string>) => Promise<Answer<T>>): Promise<T> {
  const etag = shown === null ? null : written.newest(shown);
  const answer = request(etag === null ? {} : { "If-Match": etag });
  const data = await unwrap(answer);
  const next = (await answer).response.headers.get("etag");
  if (etag !== null && next !== null) written.add(etag, next);
  return data;
}

/** One edit of a dataset after the other: each begins with what the one before it left. */
function inTurn(urn: string) {
  return { scope: { id: `edit ${urn}` } };
}

function EditProblem({ error, onReload }: { error: Error; onReload: () => void }) {
  return (
    <div className="stack">
      {error instanceof ApiError && error.status === 412
        ? <div className="problem" role="alert">Somebody else has changed this dataset since you opened it. Nothing of yours was saved.</div>
        : <Problem error={error} />}
      {error instanceof ApiError && error.status === 412
        ? <button type="button" className="button small" style={{ alignSelf: "flex-start" }} onClick={onReload}>Read it again; what you typed stays</button>
        : null}
    </div>
  );
}

/** The dataset or, with `field`, one of its columns. */
interface Target {
  urn: string;
  field?: string;
  etag: string | null;
  canEdit: boolean;
}

const fieldsOf = (field: string | undefined) => (field === undefined ? {} : { fields: [field] });

export function EditDescription({ urn, field, etag, description, canEdit }: Target & { description: string | null }) {
  const [text, setText] = useState<string | null>(null);
  // The dataset as it was when the form was opened: the page may read it again while somebody types.
  const [opened, setOpened] = useState<string | null>(null);
  const queries = useQueryClient();
  const saved = useSaved(urn);
  const save = useMutation({
    ...inTurn(urn),
    mutationFn: (value: string) => send(opened, (headers) => api.PUT("/api/v1/annotations/docs", { headers, body: { dataset: urn, description: value, ...fieldsOf(field) } as never })),
    onSuccess: async () => { setText(null); await saved(); },
  });
  const readAgain = async () => {
    save.reset();
    await saved();
    setOpened(queries.getQueryData(dataset(urn).queryKey)?.etag ?? null);
  };
  if (text === null) {
    return (
      <p className="muted" style={{ maxWidth: "80ch" }}>
        {description === null || description === "" ? <span className="faint">No description. </span> : <bdi className="wrap">{description} </bdi>}
        {canEdit ? <button type="button" className="link small" onClick={() => { setText(description ?? ""); setOpened(etag); }}>{description ? "Edit" : "Add one"}</button> : null}
      </p>
    );
  }
  return (
    <form className="stack" style={{ maxWidth: 640 }} onSubmit={(event) => { event.preventDefault(); save.mutate(text); }}>
      <textarea aria-label={field === undefined ? "Description" : `Description of ${field}`} rows={field === undefined ? 3 : 2} autoFocus value={text} onChange={(event) => { setText(event.target.value); }} />
      {save.error === null ? null : <EditProblem error={save.error} onReload={() => { void readAgain(); }} />}
      <div className="row">
        <button type="submit" className="button primary" disabled={save.isPending || text.trim() === ""}>Save</button>
        <button type="button" className="button" onClick={() => { setText(null); save.reset(); }}>Cancel</button>
      </div>
    </form>
  );
}

export interface OwnerOf {
  name: string;
  type?: string;
}

export function EditOwners({ urn, etag, owners, canEdit }: { urn: string; etag: string | null; owners: readonly OwnerOf[]; canEdit: boolean }) {
  const [text, setText] = useState<string | null>(null);
  const known = useQuery({ ...knownOwners(), enabled: text !== null });
  const queries = useQueryClient();
  const saved = useSaved(urn);
  const change = useMutation({
    ...inTurn(urn),
    mutationFn: ({ owner, remove }: { owner: OwnerOf; remove: boolean }) => send(etag, (headers) => api.PUT("/api/v1/owners/assignments", {
      headers, body: { owner: owner.name, dataset: urn, remove, ...(owner.type === undefined ? {} : { type: owner.type }) } as never,
    })),
    onSuccess: async () => { setText(null); await Promise.all([saved(), queries.invalidateQueries({ queryKey: ["owners"] })]); },
  });
  if (!canEdit) return <Owners names={owners.map((each) => each.name)} />;
  return (
    <span className="owners">
      {owners.length === 0 ? <span className="faint">no owner</span> : owners.map((each) => (
        <Tag key={`${each.name} ${each.type ?? ""}`} name={each.name} onRemove={() => { change.mutate({ owner: each, remove: true }); }} />
      ))}
      {text === null ? <button type="button" className="link small" onClick={() => { setText(""); }}>Add owner</button> : (
        <form className="row" onSubmit={(event) => { event.preventDefault(); if (text.trim() !== "") change.mutate({ owner: { name: text.trim() }, remove: false }); }}>
          <input type="text" aria-label="New owner" autoFocus list="known-owners" value={text} onChange={(event) => { setText(event.target.value); }} onKeyDown={(event) => { if (event.key === "Escape") setText(null); }} style={{ minHeight: 26, padding: "1px 8px", width: 160 }} />
          <datalist id="known-owners">{(known.data?.owners ?? []).map((each) => <option key={each.name} value={each.name} />)}</datalist>
          <button type="submit" className="button small" disabled={change.isPending}>Add</button>
          <button type="button" className="link small" onClick={() => { setText(null); change.reset(); }}>Cancel</button>
        </form>
      )}
      {change.error === null ? null : <EditProblem error={change.error} onReload={() => { change.reset(); void saved(); }} />}
    </span>
  );
}

export function EditTags({ urn, field, etag, tags, terms, compliance, canEdit }: Target & { tags: readonly string[]; terms: readonly string[]; compliance: readonly string[] }) {
  const [text, setText] = useState<string | null>(null);
  const saved = useSaved(urn);
  const change = useMutation({
    ...inTurn(urn),
    mutationFn: ({ name, add }: { name: string; add: boolean }) => send(etag, (headers) => add
      ? api.PUT("/api/v1/annotations/tags", { headers, body: { dataset: urn, names: [name], ...fieldsOf(field) } as never })
      : api.DELETE("/api/v1/annotations/tags", { headers, params: { query: { dataset: urn, names: [name], ...fieldsOf(field) } as never } })),
    onSuccess: async () => { setText(null); await saved(); },
  });
  if (!canEdit && tags.length + terms.length + compliance.length === 0) return null;
  return (
    <span className="stack">
      <span className="owners">
        <span className="faint small">Tags</span>
        {tags.map((tag) => <Tag key={tag} name={tag} onRemove={canEdit ? () => { change.mutate({ name: tag, add: false }); } : undefined} />)}
        {terms.map((term) => <span key={`t${term}`} title="Glossary term"><Tag name={term} /></span>)}
        {compliance.map((each) => <span key={`c${each}`} title="Compliance"><Tag name={each} /></span>)}
        {canEdit && text === null ? <button type="button" className="link small" onClick={() => { setText(""); }}>Add tag</button> : null}
        {text === null ? null : (
          <form className="row" onSubmit={(event) => { event.preventDefault(); if (text.trim() !== "") change.mutate({ name: text.trim(), add: true }); }}>
            <input type="text" aria-label={field === undefined ? "New tag" : `New tag of ${field}`} autoFocus value={text} onChange={(event) => { setText(event.target.value); }} onKeyDown={(event) => { if (event.key === "Escape") setText(null); }} style={{ minHeight: 26, padding: "1px 8px", width: 140 }} />
            <button type="submit" className="button small">Add</button>
          </form>
        )}
      </span>
      {change.error === null ? null : <EditProblem error={change.error} onReload={() => { change.reset(); void saved(); }} />}
    </span>
  );
}
