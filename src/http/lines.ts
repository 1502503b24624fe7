import { ok, type Result } from "../core/refusal.ts";
import type { logEvent } from "../log.ts";
import { logFault } from "./fault.ts";
import { problemOf, type Failure } from "./problem.ts";
import type { Trace } from "./trace.ts";

/**
 * An answer that is made while it is read: as many lines at a time as the handler finds at once. The next are asked for when the reader has taken
 * those before, and none when it has gone. A refusal is the last of them.
 */
export type Lines<Line> = AsyncGenerator<Result<readonly Line[]>, void, undefined>;

/** Starts it. What is refused before there is any line is refused as everywhere else, and not in a stream that has begun well. */
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
        // A reader that waits is not asked for again unless it is given something.
        while (chunk.lines.length === 0 && !chunk.isLast) chunk = await nextChunk(rest, trace, log);
        if (chunk.lines.length > 0) controller.enqueue(encoded(chunk.lines));
        if (chunk.isLast) controller.close();
      },
      cancel: async () => void (await rest.return()),
    },
    // Nothing is made before somebody wants it.
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

/** The request was logged when its answer began, and that was a good one. */
function failureChunk(failure: Failure, { requestId, route }: Trace, log: typeof logEvent): Chunk {
  log("stream_failed", {
    request_id: requestId,
    route,
    code: failure.code,
    ...(failure.reason === undefined ? {} : { reason: failure.reason }),
  });
  return {
    lines: [{ error: { ...problemOf(failure, requestId), retry_after_ms: failure.retryAfterMs } }],
    isLast: true,
  };
}

const encoder = new TextEncoder();

const encoded = (lines: readonly unknown[]): Uint8Array =>
  encoder.encode(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
