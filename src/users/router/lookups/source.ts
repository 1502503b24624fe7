import type { Positions } from "../positions.ts";
import type { CellAddress, InvalidName, Name } from "./routes.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Stops questions while they fail, so that an outage doesn't cost one question for every request (Q8). After
 * some failures in a row it lets one question pass every 250 ms, then 500 ms, then 1 s.
 */
export class Breaker {
  readonly #threshold: number;
  #failures = 0;
  #pausedUntilMs = -Infinity;

  constructor(threshold: number) {
    this.#threshold = threshold;
  }

  get isOpen(): boolean {
    return this.#failures >= this.#threshold;
  }

  /** Whether a question may be sent now. */
  allows(nowMs: number): boolean {
    return !this.isOpen || nowMs >= this.#pausedUntilMs;
  }

  /**
   * Notes that a question is sent. While the breaker is open, no other one may follow until this one has an
   * answer, or for a second: the answer never comes if the request that waits for it is cancelled.
   */
  sent(nowMs: number): void {
    if (this.isOpen) this.#pausedUntilMs = nowMs + LONGEST_PAUSE_MS;
  }

  /** How long to wait for the next permission, in milliseconds. */
  remainingMs(nowMs: number): number {
    return this.isOpen ? Math.max(0, this.#pausedUntilMs - nowMs) : 0;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#pausedUntilMs = -Infinity;
  }

  failed(nowMs: number): void {
    this.#failures += 1;
    const doublings = this.#failures - this.#threshold;
    if (doublings >= 0)
      this.#pausedUntilMs = nowMs + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(doublings, 4));
  }
}

interface ReadName {
  /** The hash of the key, 16 hexadecimal digits, the same for all spellings of a name. */
  key: string;
  shard: number;
  position: number;
  settled: boolean;
  /** How old the answer was when it was sent, in milliseconds. */
  ageMs: number;
}

/** The question has no answer. Whatever the reason is, it says nothing about the name. */
export interface SourceFailure {
  kind: "failed";
  /** For logs: it has no names and no keys. */
  detail: string;
  /** The HTTP status, if there was an answer. */
  status?: number;
  /** The shard that has no answer, if the coordinator has said so. */
  shard?: number;
  /** The coordinator works, but the shard has not reached the position that was asked for (Q9). */
  isBehind?: true;
  retryAfterMs?: number;
}

export type SourceAnswer =
  | (ReadName & { kind: "found"; cell: CellAddress; epoch: number })
  | (ReadName & { kind: "none" })
  | InvalidName
  | SourceFailure;

/** One page of a shard's report: the keys that were put on hold at the positions in (after, through] (Q3). */
export interface ReportPage {
  kind: "page";
  shard: number;
  after: number;
  through: number;
  held: readonly (readonly [position: number, keys: readonly string[]])[];
  /** True for a full page. It does not tell the newest position. */
  hasMore: boolean;
  ageMs: number;
}

/** The shard's log no longer has all that was asked for. */
interface ReportPruned {
  kind: "pruned";
}

export interface CellList {
  kind: "cells";
  cells: readonly CellAddress[];
  /** How old the answer was when it was sent, in milliseconds. */
  ageMs: number;
  /** How old the coordinator's own copy of the list was then. Only an outage makes it older than 30 s. */
  copyAgeMs: number;
}

/** The coordinator as lookups see it. Each question ends by itself after some time. */
export interface Source {
  /**
   * @param minPositions The answer is at least as new, or a failure (Q9).
   * @param traceparent The span of the request for which the coordinator is asked.
   */
  find(name: Name, minPositions: Positions, traceparent?: string): Promise<SourceAnswer>;
  /** Answers in the order of the names, each of which may fail alone. */
  findMany(
    names: readonly Name[],
    minPositions: Positions,
    traceparent?: string,
  ): Promise<readonly SourceAnswer[] | SourceFailure>;
  /** Reads a shard's report. Without `after`, an empty page that begins and ends at the newest position. */
  report(shard: number, after: number | undefined): Promise<ReportPage | ReportPruned | SourceFailure>;
  cells(): Promise<CellList | SourceFailure>;
  /** Ends every question. */
  close(): void;
}

/** An answer, where an error counts as a failure. */
export const answerOf = <Answer>(question: Promise<Answer>): Promise<Answer | SourceFailure> =>
  question.catch((error: unknown) => ({ kind: "failed", detail: describeError(error) }));

/** The name and code of whatever was thrown. Its message may have a URL in it, and so a name. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return "something was thrown that is no error";
  const { code } = (error.cause ?? error) as { code?: unknown };
  return typeof code === "string" ? `${error.name} (${code})` : error.name;
}
