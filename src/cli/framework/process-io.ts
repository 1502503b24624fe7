import { createInterface } from "node:readline/promises";
import { Writable, type Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { usageError } from "./command-error.ts";
import { ClosedOutputError, type Io, type Output, type Prompt } from "./io.ts";

/** More than any key, or any body that a coordinator takes. */
const MAX_INPUT_BYTES = 8_388_608;

/** What a command uses of this process. */
export function processIo(signal: AbortSignal): Io {
  return {
    env: process.env,
    out: outputOf(process.stdout),
    err: outputOf(process.stderr),
    prompt: process.stdin.isTTY ? promptOf(signal) : undefined,
    readInput: () => readAll(process.stdin),
    now: Date.now,
    wait: (ms) => delay(ms, undefined, { signal }),
    signal,
    fetch: (url, init) => fetch(url, init),
  };
}

function outputOf(stream: NodeJS.WriteStream): Output {
  // The callback of each write reports the error too. Without a listener, it would end the process.
  stream.on("error", () => undefined);
  const write = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      stream.write(text, (error) => {
        if (!error) resolve();
        else reject((error as NodeJS.ErrnoException).code === "EPIPE" ? new ClosedOutputError() : error);
      });
    });
  return { isTerminal: stream.isTTY, write };
}

function promptOf(signal: AbortSignal): Prompt {
  return {
    ask: (question) => readLine(question, process.stderr, signal),
    askHidden: async (question) => {
      process.stderr.write(question);
      // Readline echoes what is typed to its output.
      const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
      try {
        return await readLine("", nowhere, signal);
      } finally {
        process.stderr.write("\n");
      }
    },
  };
}

async function readLine(
  question: string,
  output: NodeJS.WritableStream,
  signal: AbortSignal,
): Promise<string> {
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  // In raw mode, Ctrl-C is a character that readline reads.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    return await lines.question(question, { signal });
  } finally {
    lines.close();
  }
}

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += (chunk as Buffer).length;
    if (size > MAX_INPUT_BYTES) throw usageError(`standard input is larger than ${MAX_INPUT_BYTES} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
