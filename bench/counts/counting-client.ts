import { setTimeout } from "node:timers/promises";
import { averageOf, type WorkCounts, type Work } from "./work-counts.ts";
import { COUNTS_PATH, type RawCounts } from "./raw-counts.ts";

/** The time between two reads of the counters, until they stop changing, and how many must be alike. */
const PAUSE_MS = 10;
const ALIKE = 4;

/** Calls an instrumented Worker, and reads what the calls have cost. */
export class CountingClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Throws when the status is not `status`, because the count would then be of different work. */
  async send(status: number, method: string, path: string, key = "", body?: unknown): Promise<unknown> {
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (answer.status !== status)
      throw new Error(`${method} ${path}: ${answer.status} instead of ${status}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Returns what was counted since the last call, once no more work is in progress. */
  async take(): Promise<RawCounts> {
    await this.quiet();
    return this.read("POST");
  }

  /** Waits until no more work is in progress. */
  async quiet(): Promise<void> {
    let before = "";
    for (let alike = 0; alike < ALIKE; await setTimeout(PAUSE_MS)) {
      const now = JSON.stringify(await this.read("GET"));
      alike = now === before ? alike + 1 : 1;
      before = now;
    }
  }

  protected async read(method: "GET" | "POST"): Promise<RawCounts> {
    return (await this.send(200, method, COUNTS_PATH)) as RawCounts;
  }

  /**
   * Counts `calls` calls, one after another. One uncounted call goes first, which pays for anything that
   * earlier work left behind.
   */
  async count(work: Work, calls: number, call: () => Promise<unknown>): Promise<WorkCounts> {
    await call();
    await this.take();
    for (let done = 0; done < calls; done += 1) await call();
    return averageOf(work, calls, await this.take());
  }
}
