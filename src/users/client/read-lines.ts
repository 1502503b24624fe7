import type { AttemptAbort } from "./attempt-abort.ts";

/** The part of a standard `ReadableStream` of bytes that the client needs. */
export interface Body {
  getReader(): {
    read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
    cancel(): Promise<unknown>;
  };
}

/**
 * Yields the lines of a body as they arrive. Ignores text after the last line feed, because the line is not
 * complete. The timer runs only while it waits for a line.
 */
export async function* readLines(
  body: Body | null | undefined,
  abort: AttemptAbort,
): AsyncGenerator<string, void, undefined> {
  const reader = body?.getReader();
  if (reader === undefined) throw new TypeError("the answer of `fetch` must have a `body` that is a stream");
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let begun = "";
  try {
    for (;;) {
      const { done, value } = await abort.race(reader.read());
      if (done) return;
      const lines = (begun + decoder.decode(value, { stream: true })).split("\n");
      begun = lines.pop() ?? "";
      for (const line of lines) {
        abort.stopTimer();
        yield line;
        abort.signal.throwIfAborted();
        abort.restartTimer();
      }
    }
  } finally {
    // Whether the rest can be cancelled does not matter.
    reader.cancel().catch(() => {});
  }
}
