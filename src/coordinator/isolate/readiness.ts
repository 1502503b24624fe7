import type { Envelope } from "../kernel/messages.ts";
import { ok, type Reason, type Refusal, type Result } from "../kernel/refusal.ts";
import type { Config } from "../config.ts";
import type { Env } from "../env.ts";
import type { Objects } from "../objects/objects.ts";
import { projectionHealth, type ProjectionHealth } from "../cron/health.ts";
import type { WaitUntil, WallClock } from "../runtime.ts";
import { askParts, type AskedPart, readTimeoutMs } from "./reach.ts";
import type { DirectoryCopy } from "./directory-copy.ts";
import type { Failure } from "../api/problem.ts";
import { RecentAnswer } from "./recent-answer.ts";

/** The parts of a deployment that a readiness check needs. */
interface CheckedDeployment {
  env: Env;
  config: Config;
  clock: WallClock;
  envelope: Envelope;
  shards: number;
  directory: Pick<DirectoryCopy, "read">;
  objects: Objects;
}

interface Ready extends Pick<ProjectionHealth, "d1" | "missingMigrations" | "cron"> {
  /** `no_cells`: everything answers, but an operator has to register a cell. */
  status: "ok" | "no_cells";
  /** The ledgers that failed. Each of them matters to its own cell only. */
  failed: string[];
}
export type ReadinessReport = Result<Ready>;

/** One part that requests need, and how it is asked whether it works. */
interface Part extends AskedPart<unknown> {
  cell?: string;
}

interface FailedPart extends Pick<Part, "name" | "cell"> {
  refusal: Refusal;
}

/** Anybody may probe, and from many places. So probes share the result of a check this recent. */
const KEEP_MS = 5_000;

/** The ledgers that one check calls: failed ones first, then the next ones in turn. */
const LEDGERS = 16;
const FAILED_LEDGERS = 8;

/** The directory and D1 are asked first, then all other parts. Each step may take one read timeout. */
const STEPS = 2;

/**
 * Checks whether the parts that all callers need can be reached: the directory, every shard, and at least
 * one ledger. A ledger that fails is reported, but does not fail the check, because its own cell can bring
 * that about. The cost of a check is bounded, because it needs no key: one call to the directory, one to
 * each shard (at most 256), 16 to ledgers, and three reads of D1. Ledgers are checked in turn. Those that
 * failed in the last check, or in the last run of the cron, which visits all of them every minute, are called
 * again first.
 */
export class Readiness {
  readonly #deployment: CheckedDeployment;
  readonly #projection: () => Promise<ProjectionHealth>;
  readonly #shared: RecentAnswer<Ready>;
  #failedCells: readonly string[] = [];
  /** How many ledgers were called in turn. Isolates start at different cells. */
  #turns = Math.floor(Math.random() * 2 ** 31);

  constructor(
    deployment: CheckedDeployment,
    projection = () => projectionHealth(deployment.env, FAILED_LEDGERS),
  ) {
    this.#deployment = deployment;
    this.#projection = projection;
    this.#shared = new RecentAnswer(deployment.clock, {
      name: "the readiness check of another request",
      keepMs: KEEP_MS,
      timeoutMs: STEPS * readTimeoutMs(deployment.config.limits),
    });
  }

  check(waitUntil: WaitUntil): Promise<ReadinessReport> {
    return this.#shared.get(waitUntil, () => this.#ask());
  }

  /** Asks the directory first, because it lists the cells. */
  async #ask(): Promise<ReadinessReport> {
    const [read, { suspects, ...projection }] = await Promise.all([
      this.#deployment.directory.read(),
      this.#projection(),
    ]);
    const cells = read.ok ? [...read.value.cells.keys()] : [];
    // Before the first cell is registered, no shard answers (P2).
    const called = read.ok && !read.value.isPlaced ? [] : this.#partsToCall(cells, suspects);
    const failed: FailedPart[] = [
      ...(read.ok ? [] : [{ name: "directory", refusal: read.refusal }]),
      ...(await this.#failedOf(called)),
    ];
    this.#failedCells = failed.flatMap(({ cell }) => cell ?? []);
    if (failsAll(called, failed)) return { ok: false, refusal: notReady(failed) };
    const status = read.ok && cells.length === 0 ? "no_cells" : "ok";
    return ok({ status, failed: failed.map(({ name }) => name), ...projection });
  }

  #partsToCall(cells: readonly string[], suspects: readonly string[]): Part[] {
    const { objects, envelope, shards } = this.#deployment;
    return [
      ...Array.from({ length: shards }, (_, shard) => ({
        name: `shard ${shard}`,
        ask: () => objects.shard(shard).ping(envelope),
      })),
      ...[...this.#cellsToCall(cells, suspects)].map((cell) => ({
        name: `ledger of cell ${cell}`,
        cell,
        ask: () => objects.ledger(cell).status(envelope),
      })),
    ];
  }

  #cellsToCall(cells: readonly string[], suspects: readonly string[]): Set<string> {
    const registered = new Set(cells);
    const called = new Set(
      [...this.#failedCells, ...suspects].filter((cell) => registered.has(cell)).slice(0, FAILED_LEDGERS),
    );
    for (let seen = 0; seen < cells.length && called.size < LEDGERS; seen += 1) {
      called.add(cells[this.#turns % cells.length] ?? "");
      this.#turns += 1;
    }
    return called;
  }

  async #failedOf(parts: readonly Part[]): Promise<FailedPart[]> {
    const answers = await askParts(parts, this.#deployment.config.limits);
    return parts.flatMap((part, index) => {
      const answer = answers[index];
      return answer === undefined || answer.ok ? [] : [{ ...part, refusal: answer.refusal }];
    });
  }
}

/** A ledger that has lost a part of its history answers, so one cell alone cannot make this true (L7). */
function failsAll(called: readonly Part[], failed: readonly FailedPart[]): boolean {
  const ledgers = called.filter(({ cell }) => cell !== undefined);
  const silent = failed.filter(
    ({ cell, refusal }) => cell !== undefined && refusal.reason !== "HISTORY_LOST",
  );
  const isAnyOther = failed.some(({ cell }) => cell === undefined);
  return isAnyOther || (ledgers.length > 0 && silent.length === ledgers.length);
}

/** A part that has lost a part of its history answers, but nothing that could be used (H4). */
function notReady(failed: readonly FailedPart[]): Failure {
  const countOf = (reason: Reason): number =>
    failed.filter(({ refusal }) => refusal.reason === reason).length;
  const lost = countOf("HISTORY_LOST");
  const unknown = countOf("UNKNOWN_TABLES");
  const silent = failed.length - lost - unknown;
  const details = [
    ...(silent > 0 ? [silent === 1 ? "1 part does not answer" : `${silent} parts do not answer`] : []),
    ...(lost > 0 ? [`${lost === 1 ? "1 part has" : `${lost} parts have`} lost some of the history`] : []),
    ...(unknown > 0
      ? [`${unknown === 1 ? "1 part has" : `${unknown} parts have`} tables that need another version`]
      : []),
  ];
  return {
    code: "UNAVAILABLE",
    detail: details.join(", "),
    ...(lost > 0 ? { reason: "HISTORY_LOST" } : unknown > 0 ? { reason: "UNKNOWN_TABLES" } : {}),
    failed: failed.map(({ name }) => name),
  };
}
