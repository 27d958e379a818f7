/** The client of the API, typed by the OpenAPI document of the server. */
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Verdict = Schemas["Verdict"];

const TOKEN_KEY = "lumos.token";

/** An error of the server, with the sentence that a person can act on. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly requestId?: string,
  ) {
    super(message);
  }
}

export function token(): string | null {
  return sessionStorage.getItem(TOKEN_KEY);
}

/** Keep a token until the tab is closed; null signs out. */
export function setToken(value: string | null): void {
  if (value === null) sessionStorage.removeItem(TOKEN_KEY);
  else sessionStorage.setItem(TOKEN_KEY, value);
}

export function authorization(): Record<string, string> {
  const value = token();
  return value === null ? {} : { Authorization: `Bearer ${value}` };
}

const withToken: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
    return request;
  },
};

export type Transport = (request: Request) => Promise<Response>;

let transport: Transport = (request) => fetch(request);
let siteTime: string | null = null;

/** Answer all requests from the files of a static site, whose data is from the given time. */
export function answerFromSite(answer: Transport, asOf: string): void {
  transport = answer;
  siteTime = asOf;
}

/** The time of the data of a static site; null on a server, whose data is current. */
export function dataTime(): string | null {
  return siteTime;
}

/** The present, or the time of the data of a static site: what "this week" refers to. */
export function dataNow(): number {
  return siteTime === null ? Date.now() : Date.parse(siteTime);
}

// A page that was opened from disk has no host; its requests never leave the browser.
const origin = globalThis.location?.origin ?? "";
export const api = createClient<paths>({
  baseUrl: origin.startsWith("http") ? origin : "http://site.invalid",
  fetch: (request) => transport(request),
});
api.use(withToken);

interface Result<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of a response, or an ApiError. */
export async function unwrap<T>(promise: Promise<Result<T>>): Promise<T> {
  let result: Result<T>;
  try {
    result = await promise;
  } catch {
    throw new ApiError("The server does not answer. Check that lumos serve is running.", 0);
  }
  if (result.response.ok) return result.data as T;
  const problem = result.error as Partial<Schemas["ApiProblem"]> | undefined;
  throw new ApiError(
    problem?.detail ?? `The server answered with status ${result.response.status}.`,
    result.response.status,
    problem?.request_id,
  );
}
