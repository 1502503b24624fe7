import type { Fetch } from "../../users/client/index.ts";

/** Everything that a command uses of the process it runs in. */
export interface Io {
  env: Readonly<Record<string, string | undefined>>;
  /** Data, and nothing else. */
  out: Output;
  /** Messages, progress and questions. */
  err: Output;
  /** Asks a person. Undefined: nobody sits at a terminal. */
  prompt: Prompt | undefined;
  /** Reads all of standard input. */
  readInput: () => Promise<string>;
  now: () => number;
  wait: (ms: number) => Promise<void>;
  /** Aborts on Ctrl-C. */
  signal: AbortSignal;
  fetch: Fetch;
}

export interface Output {
  isTerminal: boolean;
  /** @throws {ClosedOutputError} when nobody reads any more, as in `| head` */
  write: (text: string) => Promise<void>;
}

export interface Prompt {
  ask: (question: string) => Promise<string>;
  /** Does not show what is typed. */
  askHidden: (question: string) => Promise<string>;
}

/** Nobody reads the output any more. The command ends without a message. */
export class ClosedOutputError extends Error {
  override readonly name = "ClosedOutputError";
}

/** Resolves on Ctrl-C. */
export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
