/** Server-sent events over fetch, which can send a token and EventSource cannot. */
import { ApiError, authorization } from "./client";

export interface ServerEvent {
  event: string;
  data: string;
}

/** The events in a text, and what remains of an event that is not complete. */
export function parseEvents(text: string): { events: ServerEvent[]; rest: string } {
  const blocks = text.replaceAll("\r\n", "\n").split("\n\n");
  const rest = blocks.pop() ?? "";
  const events = blocks.flatMap((block) => {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("event:")) event = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
    return data.length === 0 ? [] : [{ event, data: data.join("\n") }];
  });
  return { events, rest };
}

/** Call `onEvent` for each event until the stream ends or the signal aborts it. */
export async function follow(path: string, signal: AbortSignal, onEvent: (event: ServerEvent) => void): Promise<void> {
  const response = await fetch(path, { headers: { Accept: "text/event-stream", ...authorization() }, signal });
  if (!response.ok || response.body === null) throw new ApiError(`The server answered with status ${response.status}.`, response.status);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parsed = parseEvents(rest + value);
    rest = parsed.rest;
    parsed.events.forEach(onEvent);
  }
}
