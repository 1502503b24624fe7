import type { AttemptAbort } from "./attempt-abort.ts";

/** The part of a standard `ReadableStream` of bytes that is needed. */
export interface Body {
  getReader(): {
    read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
    cancel(): Promise<unknown>;
  };
}

/**
 * The lines of a body, as they come. What has no line feed behind it is no line yet, and never becomes one when the body ends. The time runs
 * only while a line is waited for.
 */
export async function* readLines(
  body: Body | null | undefined,
  abort: AttemptAbort,
): AsyncGenerator<string, void, undefined> {
  const reader = body?.getReader();
  if (reader === undefined) throw new TypeError("the answer has no `body` that could be read as a stream");
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
    // Nobody waits for what there is left, if there is anything; what fails now changes nothing.
    reader.cancel().catch(() => {});
  }
}
