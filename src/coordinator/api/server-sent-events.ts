import { wanted } from "./accept.ts";
import type { LineForm } from "./lines.ts";

/**
 * An event of a stream of server-sent events. `id` is what a client sends as `Last-Event-ID` when it connects
 * again. An empty one is a comment, which keeps the connection open.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export interface ServerSentEvent {
  event?: string;
  id?: string;
  data?: unknown;
  /** How long a client should wait before it connects again. */
  retryMs?: number;
}

export const EVENT_STREAM = "text/event-stream";

/** The text of an event. JSON has no line breaks, so the data is one line. */
export function eventText({ event, id, data, retryMs }: ServerSentEvent): string {
  const lines = [
    ...(event === undefined ? [] : [`event: ${event}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(retryMs === undefined ? [] : [`retry: ${retryMs}`]),
    ...(data === undefined ? [] : [`data: ${JSON.stringify(data)}`]),
  ];
  return `${lines.length === 0 ? ":" : lines.join("\n")}\n\n`;
}

export const eventLines: LineForm<ServerSentEvent> = {
  textOf: eventText,
  failed: (problem) => ({ event: "problem", data: problem }),
};

/** Whether a request asks for events and not for a page. A client does not want what has `q=0`. */
export const acceptsEvents = (accept: string | undefined): boolean => wanted(accept, EVENT_STREAM) > 0;
