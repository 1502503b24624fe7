import { fanOut } from "../core/fan-out.ts";
import type { Envelope, Reply } from "../core/messages.ts";
import { ok, type Result } from "../core/refusal.ts";
import type { Config } from "../config.ts";
import type { Env } from "../env.ts";
import type { Objects } from "../objects/objects.ts";
import type { WallClock } from "../runtime.ts";
import { d1Health } from "../projections/health.ts";
import type { DirectoryCopy } from "./directory-copy.ts";
import type { Failure } from "./problem.ts";
import { reach, readTimeoutMs } from "./reach.ts";

/** The parts of a deployment that a readiness check needs. */
interface CheckedDeployment {
  env: Env;
  config: Config;
  clock: WallClock;
  envelope: Envelope;
  directory: DirectoryCopy;
  objects: Objects;
}

type Report = Result<{ d1: "up" | "down" }>;

interface Check {
  startedMs: number;
  doneMs: number | undefined;
  report: Promise<Report>;
}

/**
 * A check calls every part, and probes may come from many places. So probes share the result of a check this
 * recent.
 */
const KEEP_MS = 1_000;

/**
 * A multiple of the read timeout: one for the directory, and the rest for the other parts, which are called a
 * few at a time.
 */
const TIMEOUT_FACTOR = 4;

/** Checks whether all parts that requests need can be reached. */
export class Readiness {
  readonly #deployment: CheckedDeployment;
  #latest: Check | undefined;

  constructor(deployment: CheckedDeployment) {
    this.#deployment = deployment;
  }

  async check(): Promise<Report> {
    const now = this.#deployment.clock.now();
    const timeoutMs = TIMEOUT_FACTOR * readTimeoutMs(this.#deployment.config.limits);
    const latest = this.#latest;
    if (
      latest !== undefined &&
      now - (latest.doneMs ?? now) <= KEEP_MS &&
      now - latest.startedMs <= timeoutMs
    ) {
      // This promise belongs to another request, so it needs its own timer. See `DirectoryCopy`.
      return reach(timeoutMs, { name: "the readiness check of another request" }, () => latest.report);
    }
    const started: Check = { startedMs: now, doneMs: undefined, report: this.#ask() };
    this.#latest = started;
    const report = await started.report;
    started.doneMs = this.#deployment.clock.now();
    return report;
  }

  /** Asks the directory first, because it lists the cells. */
  async #ask(): Promise<Report> {
    const { config, directory, objects, envelope, env } = this.#deployment;
    const read = await directory.read();
    const cells = read.ok ? [...read.value.cells.keys()] : [];
    const parts: { name: string; ping: () => Promise<Reply<unknown>> }[] = [
      ...Array.from({ length: config.shards }, (_, shard) => ({
        name: `shard ${shard}`,
        ping: () => objects.shard(shard).ping(envelope),
      })),
      ...cells.map((cell) => ({
        name: `ledger of cell ${cell}`,
        ping: () => objects.ledger(cell).status(envelope),
      })),
    ];
    const [answers, d1] = await Promise.all([
      fanOut(parts, config.limits.fanOut, ({ name, ping }) =>
        reach(readTimeoutMs(config.limits), { name }, ping),
      ),
      d1Health(env),
    ]);
    const failed = [
      ...(read.ok ? [] : ["directory"]),
      ...parts.flatMap(({ name }, index) => (answers[index]?.ok ? [] : [name])),
    ];
    return failed.length === 0 ? ok({ d1 }) : { ok: false, refusal: notReady(failed) };
  }
}

const notReady = (failed: readonly string[]): Failure => ({
  code: "UNAVAILABLE",
  detail: failed.length === 1 ? "1 part does not answer" : `${failed.length} parts do not answer`,
  failed,
});
