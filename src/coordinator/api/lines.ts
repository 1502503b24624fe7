import { ok, type Result } from "../kernel/refusal.ts";
import type { logEvent } from "../log.ts";
import { logFault, problemOf, type Failure } from "./problem.ts";
import { loggedIds, type Trace } from "./trace.ts";
import { wanted } from "./http-answer.ts";

/**
 * An answer that is made while it is read. The handler yields all lines that it has at once. It is asked for
 * more only when the reader has taken the previous ones, and not any more once the reader has gone. A refusal
 * ends the answer.
 */
export type Lines<Line> = AsyncGenerator<Result<readonly Line[]>, void, undefined>;

/** How a stream writes its lines, and a failure after its beginning. */
interface LineForm<Line> {
  textOf: (line: Line) => string;
  failed: (problem: object) => Line;
}

export const jsonLines: LineForm<unknown> = {
  textOf: (line) => `${JSON.stringify(line)}\n`,
  failed: (problem) => ({ error: problem }),
};

/**
 * Waits for the first lines, then opens the stream. A refusal before the first line gets its own HTTP status,
 * instead of a stream with status 200 that ends with an error.
 */
export async function openLines<Line>(
  lines: Lines<Line>,
  form: LineForm<Line>,
  trace: Trace,
  log: typeof logEvent,
): Promise<Result<ReadableStream<Uint8Array>>> {
  const first = await lines.next();
  if (first.done === true) return ok(streamOf({ lines: [], isLast: true }, lines, form, trace, log));
  if (first.value.ok)
    return ok(streamOf({ lines: first.value.value, isLast: false }, lines, form, trace, log));
  await lines.return();
  return first.value;
}

function streamOf<Line>(
  first: Chunk<Line>,
  rest: Lines<Line>,
  form: LineForm<Line>,
  trace: Trace,
  log: typeof logEvent,
): ReadableStream<Uint8Array> {
  const next = (): Promise<Chunk<Line>> => nextChunk(rest, form, trace, log);
  let ready: Chunk<Line> | undefined = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let chunk = ready ?? (await next());
        ready = undefined;
        // The stream doesn't call `pull` again until something is enqueued, so empty chunks are skipped here.
        while (chunk.lines.length === 0 && !chunk.isLast) chunk = await next();
        if (chunk.lines.length > 0) controller.enqueue(encoded(chunk.lines, form));
        if (chunk.isLast) controller.close();
      },
      cancel: async () => void (await rest.return()),
    },
    // Without a queue, no line is made before it is read.
    { highWaterMark: 0 },
  );
}

interface Chunk<Line> {
  lines: readonly Line[];
  isLast: boolean;
}

async function nextChunk<Line>(
  rest: Lines<Line>,
  form: LineForm<Line>,
  trace: Trace,
  log: typeof logEvent,
): Promise<Chunk<Line>> {
  try {
    const { value, done } = await rest.next();
    if (done === true) return { lines: [], isLast: true };
    if (value.ok) return { lines: value.value, isLast: false };
    await rest.return();
    return failureChunk(value.refusal, form, trace, log);
  } catch (error) {
    return failureChunk(logFault(error, trace, log), form, trace, log);
  }
}

/**
 * The request was already logged as a success when its answer began, so the failure gets a log line of its
 * own.
 */
function failureChunk<Line>(
  failure: Failure,
  form: LineForm<Line>,
  trace: Trace,
  log: typeof logEvent,
): Chunk<Line> {
  log("stream_failed", {
    ...loggedIds(trace),
    route: trace.route,
    code: failure.code,
    ...(failure.reason === undefined ? {} : { reason: failure.reason }),
  });
  const problem = { ...problemOf(failure, trace.requestId), retry_after_ms: failure.retryAfterMs };
  return { lines: [form.failed(problem)], isLast: true };
}

const encoder = new TextEncoder();

const encoded = <Line>(lines: readonly Line[], { textOf }: LineForm<Line>): Uint8Array =>
  encoder.encode(lines.map((line) => textOf(line)).join(""));

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
