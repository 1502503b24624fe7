import { createClient, type Client } from "../../src/users/client/client.ts";
import type { Body, FetchResponse } from "../../src/users/client/connection.ts";
import { ownPeakMib } from "./memory.ts";
import type { CellAccess, ResourceUsage, VerifyTask } from "./program.ts";
import { CELL } from "./routes.ts";

const MIB = 2 ** 20;
const mib = (): number => process.memoryUsage.rss() / MIB;

/** Measures what this process uses, and provides a client that counts its calls and bytes. */
export class Meter {
  readonly client: Client;
  readonly #startedMs = performance.now();
  readonly #cpuBefore = process.cpuUsage();
  readonly #calls: Record<string, number> = {};
  #failed = 0;
  #bytes = 0;
  #earlyMib: number | undefined;

  constructor({ url, key }: CellAccess) {
    this.client = createClient({
      url,
      key,
      cell: CELL,
      fetch: async (to, init) => this.#counting(await fetch(to, init)),
      hooks: {
        onRequest: ({ operation }) => (this.#calls[operation] = (this.#calls[operation] ?? 0) + 1),
        onResponse: ({ kind }) => (this.#failed += kind === "ok" ? 0 : 1),
      },
    });
  }

  /** Records the memory in use when a tenth of the work is done. */
  early(): void {
    this.#earlyMib ??= mib();
  }

  used(): ResourceUsage {
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    return {
      seconds: (performance.now() - this.#startedMs) / 1_000,
      bytes: this.#bytes,
      calls: this.#calls,
      failed: this.#failed,
      earlyMib: this.#earlyMib ?? mib(),
      endMib: mib(),
      peakMib: ownPeakMib(),
      cpuSeconds: (user + system) / 1e6,
    };
  }

  #counting(answer: Response): FetchResponse {
    const count = (bytes: number): void => void (this.#bytes += bytes);
    return {
      status: answer.status,
      headers: answer.headers,
      text: async () => {
        const text = await answer.text();
        count(Buffer.byteLength(text));
        return text;
      },
      body:
        answer.body === null
          ? null
          : { getReader: () => countingReader(answer.body as ReadableStream<Uint8Array>, count) },
    };
  }
}

function countingReader(
  body: ReadableStream<Uint8Array>,
  count: (bytes: number) => void,
): ReturnType<Body["getReader"]> {
  const reader = body.getReader();
  return {
    read: async () => {
      const read = await reader.read();
      count(read.value?.byteLength ?? 0);
      return read;
    },
    cancel: () => reader.cancel(),
  };
}

/** Receives the task that this process was started for, and sends back the result of `work`. */
export function serveTask(work: (task: VerifyTask, meter: Meter) => Promise<ResourceUsage>): void {
  // The parent process is gone when the channel closes.
  process.once("disconnect", () => process.exit(1));
  process.once("message", (task: VerifyTask) => {
    work(task, new Meter(task)).then(
      (used) => process.send?.(used, () => process.exit(0)),
      (error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      },
    );
  });
}
