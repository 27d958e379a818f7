/** Rows of a schema tree, and the verdict of several changes. */
import type { Schemas } from "../api/client";
import { childrenOf, quoted, type TypeNode } from "./types";

export interface SchemaRow {
  node: TypeNode;
  depth: number;
  field?: Schemas["FieldReport"];
  nested?: Schemas["NestedField"];
}

/** The visible rows of a schema: fields, and what is inside of those that are open. */
export function schemaRows(fields: readonly Schemas["FieldReport"][], open: ReadonlySet<string>): SchemaRow[] {
  const rows: SchemaRow[] = [];
  for (const field of fields) {
    const node: TypeNode = { name: field.name, path: field.name, type: field.type, nullable: field.nullable ?? true, children: childrenOf(field.type, quoted(field.name)) };
    const nested = new Map((field.nested ?? []).map((each) => [each.path, each]));
    const add = (each: TypeNode, depth: number) => {
      rows.push({ node: each, depth, field: depth === 0 ? field : undefined, nested: nested.get(each.path) });
      if (open.has(each.path)) for (const child of each.children) add(child, depth + 1);
    };
    add(node, 0);
  }
  return rows;
}

/** The paths of all fields that have fields inside. */
export function allPaths(fields: readonly Schemas["FieldReport"][]): Set<string> {
  const paths = new Set<string>();
  const add = (node: TypeNode) => {
    if (node.children.length > 0) paths.add(node.path);
    node.children.forEach(add);
  };
  for (const field of fields) add({ name: field.name, path: field.name, type: field.type, nullable: true, children: childrenOf(field.type, quoted(field.name)) });
  return paths;
}

export function worst(verdicts: readonly string[]): string {
  return ["breaking", "undetermined", "compatible"].find((each) => verdicts.includes(each)) ?? "informational";
}

/** Order versions as 1.9.0 before 1.10.0. */
export function compareVersions(one: string, two: string): number {
  return one.localeCompare(two, "en", { numeric: true });
}

/** What an annotation says; owners are named as `TYPE:kind:name`. */
export function annotationText(slot: string, name: string, value: string | null | undefined): string {
  const owner = slot === "owner" ? /^([^:]*):[^:]*:(.*)$/s.exec(name) : null;
  if (owner !== null) return `${owner[2]} (${(owner[1] ?? "").toLowerCase().replaceAll("_", " ")})`;
  return [name, value].filter(Boolean).join(": ");
}
