/** Parses the canonical text of a type into the fields below it. */

export interface TypeNode {
  name: string;
  path: string;
  type: string;
  nullable: boolean;
  children: TypeNode[];
}

const MAX_DEPTH = 24;

/** The fields inside of a type: members of structs, items of arrays, keys and values of maps. */
export function childrenOf(type: string, path: string, depth = 0): TypeNode[] {
  if (depth >= MAX_DEPTH) return [];
  const match = /^(STRUCT|ARRAY|MAP|UNION)<([\s\S]*)>$/.exec(type.trim());
  if (match === null) return [];
  const [, kind, inner = ""] = match;
  const parts = splitTop(inner);
  if (kind === "STRUCT") {
    return parts.flatMap((part) => {
      const colon = colonAfterName(part);
      if (colon < 0) return [];
      const name = part.slice(0, colon).trim();
      return [node(unquote(name), `${path}.${name}`, part.slice(colon + 1), depth)];
    });
  }
  if (kind === "ARRAY") {
    const item = node("items", `${path}[]`, inner, depth);
    // The members of an array of structs stand directly below the array.
    return item.children.length > 0 && item.type.startsWith("STRUCT") ? item.children : [item];
  }
  if (kind === "MAP") {
    return parts.map((part, index) => node(index === 0 ? "key" : "value", `${path}{${index === 0 ? "key" : ""}}`, part, depth));
  }
  return parts.map((part, index) => node(`option ${index + 1}`, `${path}|${index}`, part, depth));
}

function node(name: string, path: string, text: string, depth: number): TypeNode {
  const trimmed = text.trim();
  const nullable = !trimmed.endsWith(" NOT NULL");
  const type = nullable ? trimmed : trimmed.slice(0, -" NOT NULL".length);
  return { name, path, type, nullable, children: childrenOf(type, path, depth + 1) };
}

/** A type without what is inside of it, for a line of its own. */
export function typeHead(type: string): string {
  return /^ARRAY<STRUCT</.test(type) ? "ARRAY<STRUCT>" : type.replace(/^(STRUCT|MAP|UNION)<[\s\S]*>$/, "$1");
}

/** A name as in the text of a type: plain, or in backticks. */
export function quoted(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}

function unquote(name: string): string {
  return name.startsWith("`") && name.endsWith("`") ? name.slice(1, -1).replaceAll("``", "`") : name;
}

function colonAfterName(part: string): number {
  let quoted = false;
  for (let index = 0; index < part.length; index += 1) {
    if (part[index] === "`") quoted = !quoted;
    else if (part[index] === ":" && !quoted) return index;
  }
  return -1;
}

/** Parts between commas that are in no bracket and in no quotes. */
export function splitTop(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let quote: string | null = null;
  let start = 0;
  for (let index = 0; index < text.length; index += 1) {
    const char = text[index];
    if (quote !== null) {
      if (char === quote) quote = null;
    } else if (char === "`" || char === "'") quote = char;
    else if (char === "<" || char === "(") depth += 1;
    else if (char === ">" || char === ")") depth -= 1;
    else if (char === "," && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  const last = text.slice(start);
  return last.trim() === "" ? parts : [...parts, last];
}
