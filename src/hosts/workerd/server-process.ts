import { escapeLines } from "../../common/text/escape.ts";
import { fstatSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout } from "node:timers/promises";

/** How long the last lines of the log wait for a reader. */
const DRAIN_MS = 3_000;

let output: LogOutput | undefined;

/**
 * Logs a line on standard error. The first line must come after all programs of the process have been started
 * (see `standardErrorLog`).
 */
export function log(line: string): void {
  output ??= standardErrorLog();
  output.write(line);
}

/** Runs a server until it has stopped, and ends the process. An error becomes a sentence and exit code 1. */
export function runServer(main: () => Promise<void>): void {
  // A reader that closes standard output or standard error must not end the server.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  main().then(
    () => exit(0),
    (error: unknown) =>
      exit(
        1,
        escapeLines(`leasehold: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`),
      ),
  );
}

/** Ends the process once the log is read. A reader that reads nothing delays it by `DRAIN_MS`. */
async function exit(code: number, lastLine?: string): Promise<void> {
  if (lastLine !== undefined && output === undefined) process.stderr.write(`${lastLine}\n`);
  else if (lastLine !== undefined) log(lastLine);
  await output?.drain(DRAIN_MS);
  process.exit(code);
}

/** How much may wait for the reader of a pipe: about 1,200 lines. */
const MAX_QUEUED_BYTES = 262_144;

const STDERR = 2;

/** Receives a text, or returns false if it has no room for it. It never waits. */
type Send = (text: string) => boolean;

/** Resolves when everything that was sent has been read or cannot be read any more. */
type Flush = () => Promise<void>;

/** Logs lines without waiting for a reader. Lines without room are dropped, and their number is logged. */
export class LogOutput {
  readonly #send: Send;
  readonly #flush: Flush;
  #dropped = 0;

  constructor(send: Send, flush: Flush = () => Promise.resolve()) {
    this.#send = send;
    this.#flush = flush;
  }

  write(line: string): void {
    this.reportDropped();
    if (!this.#send(`${line}\n`)) this.#dropped += 1;
  }

  /** Logs how many lines were dropped, if any were and if there is room. */
  reportDropped(): void {
    if (this.#dropped === 0) return;
    if (this.#send(`${JSON.stringify({ event: "log_lines_dropped", lines: this.#dropped })}\n`))
      this.#dropped = 0;
  }

  /** Waits until the reader has everything, but no longer than `maxMs`. Call it before the process exits. */
  async drain(maxMs: number): Promise<void> {
    const flushed = this.#flush().then(() => {
      this.reportDropped();
      return this.#flush();
    });
    await Promise.race([flushed, setTimeout(maxMs, undefined, { ref: false })]);
  }
}

/**
 * Returns the log on standard error. Call it after all programs that inherit standard error have been
 * started: libuv makes it blocking for both when it starts one, and a new socket makes it non-blocking again.
 */
function standardErrorLog(): LogOutput {
  const kind = fstatSync(STDERR);
  return kind.isFIFO() || kind.isSocket() ? pipeLog(STDERR) : new LogOutput(sendToFile);
}

function pipeLog(fd: number): LogOutput {
  const pipe = new Socket({ fd, readable: false, writable: true });
  const send: Send = (text) => {
    if (pipe.destroyed || pipe.writableLength >= MAX_QUEUED_BYTES) return false;
    pipe.write(text);
    return true;
  };
  // Writes end in order, or all of them fail.
  const flush: Flush = () => new Promise((end) => pipe.write("", () => end()));
  const piped = new LogOutput(send, flush);
  // The reader has closed the pipe. That is no reason to end.
  pipe.on("error", () => {});
  pipe.on("drain", () => piped.reportDropped());
  return piped;
}

/** A file or a terminal takes a line at once, or fails at once, for example if the disk is full. */
function sendToFile(text: string): boolean {
  try {
    writeSync(STDERR, text);
    return true;
  } catch {
    return false;
  }
}
