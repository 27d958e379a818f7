/** Arithmetic with names, for the formula that people edit: + - * / and parentheses. */

export class FormulaError extends Error {}

type Tokens = { texts: string[]; at: number };

/** The value of a formula; names stand for the given values. */
export function evaluate(formula: string, values: Readonly<Record<string, number>>): number {
  const texts = formula.match(/[A-Za-z_]\w*|\d+(?:\.\d+)?|\S/g) ?? [];
  const tokens: Tokens = { texts, at: 0 };
  const value = sum(tokens, values);
  if (tokens.at < texts.length) throw new FormulaError(`Unexpected '${texts[tokens.at] ?? ""}'.`);
  return value;
}

function take(tokens: Tokens, ...wanted: string[]): string | null {
  const text = tokens.texts[tokens.at];
  if (text === undefined || !wanted.includes(text)) return null;
  tokens.at += 1;
  return text;
}

function sum(tokens: Tokens, values: Readonly<Record<string, number>>): number {
  let value = product(tokens, values);
  for (let sign = take(tokens, "+", "-"); sign !== null; sign = take(tokens, "+", "-")) {
    const next = product(tokens, values);
    value = sign === "+" ? value + next : value - next;
  }
  return value;
}

function product(tokens: Tokens, values: Readonly<Record<string, number>>): number {
  let value = factor(tokens, values);
  for (let sign = take(tokens, "*", "/"); sign !== null; sign = take(tokens, "*", "/")) {
    const next = factor(tokens, values);
    if (sign === "/" && next === 0) throw new FormulaError("Division by zero.");
    value = sign === "*" ? value * next : value / next;
  }
  return value;
}

function factor(tokens: Tokens, values: Readonly<Record<string, number>>): number {
  if (take(tokens, "-") !== null) return -factor(tokens, values);
  if (take(tokens, "(") !== null) {
    const value = sum(tokens, values);
    if (take(tokens, ")") === null) throw new FormulaError("A ')' is missing.");
    return value;
  }
  const text = tokens.texts[tokens.at];
  if (text === undefined) throw new FormulaError("The formula ends too early.");
  tokens.at += 1;
  if (/^\d/.test(text)) return Number(text);
  if (Object.hasOwn(values, text)) return values[text] ?? 0;
  throw new FormulaError(`Unknown name '${text}'. Use ${Object.keys(values).join(", ")}.`);
}
