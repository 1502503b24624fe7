import { ok, type Result } from "../core/refusal.ts";
import type { logEvent } from "../log.ts";
import { logFault } from "./fault.ts";
import { problemOf, type Failure } from "./problem.ts";
import { loggedIds, type Trace } from "./trace.ts";

/**
 * An answer that is made while it is read. The handler yields all lines that it has at once. It is asked for
 * more only when the reader has taken the previous ones, and not any more once the reader has gone. A refusal
 * ends the answer.
 */
export type Lines<Line> = AsyncGenerator<Result<readonly Line[]>, void, undefined>;

/**
 * Waits for the first lines, then opens the stream. A refusal before the first line gets its own HTTP status,
 * instead of a stream with status 200 that ends with an error.
 */
export async function openLines(
  lines: Lines<unknown>,
  trace: Trace,
  log: typeof logEvent,
): Promise<Result<ReadableStream<Uint8Array>>> {
  const first = await lines.next();
  if (first.done === true) return ok(streamOf({ lines: [], isLast: true }, lines, trace, log));
  return first.value.ok
    ? ok(streamOf({ lines: first.value.value, isLast: false }, lines, trace, log))
    : first.value;
}

function streamOf(
  first: Chunk,
  rest: Lines<unknown>,
  trace: Trace,
  log: typeof logEvent,
): ReadableStream<Uint8Array> {
  let ready: Chunk | undefined = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let chunk = ready ?? (await nextChunk(rest, trace, log));
        ready = undefined;
        // The stream doesn't call `pull` again until something is enqueued, so empty chunks are skipped here.
        while (chunk.lines.length === 0 && !chunk.isLast) chunk = await nextChunk(rest, trace, log);
        if (chunk.lines.length > 0) controller.enqueue(encoded(chunk.lines));
        if (chunk.isLast) controller.close();
      },
      cancel: async () => void (await rest.return()),
    },
    // Without a queue, no line is made before it is read.
    { highWaterMark: 0 },
  );
}

interface Chunk {
  lines: readonly unknown[];
  isLast: boolean;
}

async function nextChunk(rest: Lines<unknown>, trace: Trace, log: typeof logEvent): Promise<Chunk> {
  try {
    const { value, done } = await rest.next();
    if (done === true) return { lines: [], isLast: true };
    if (value.ok) return { lines: value.value, isLast: false };
    return failureChunk(value.refusal, trace, log);
  } catch (error) {
    return failureChunk(logFault(error, trace, log), trace, log);
  }
}

/**
 * The request was already logged as a success when its answer began, so the failure gets a log line of its
 * own.
 */
function failureChunk(failure: Failure, trace: Trace, log: typeof logEvent): Chunk {
  log("stream_failed", {
    ...loggedIds(trace),
    route: trace.route,
    code: failure.code,
    ...(failure.reason === undefined ? {} : { reason: failure.reason }),
  });
  return {
    lines: [{ error: { ...problemOf(failure, trace.requestId), retry_after_ms: failure.retryAfterMs } }],
    isLast: true,
  };
}

const encoder = new TextEncoder();

const encoded = (lines: readonly unknown[]): Uint8Array =>
  encoder.encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
