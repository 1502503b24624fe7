import { rmSync } from "node:fs";
import { join } from "node:path";
import { Deployment } from "./deployment.ts";
import type { Key, Results } from "./results.ts";
import type { Axis, Variant } from "./variants.ts";
import { Caller, works, type Work } from "./caller.ts";

export interface GrowthScale {
  rounds: number;
  /** The duration of one measurement. */
  seconds: number;
  /** The duration of the warm-up before the first round, which keeps start-up costs out of the results. */
  warmUpSeconds: number;
}

/** Runs all variants of one axis at the same time, and measures them in turn. */
export class Growth {
  readonly #axis: Axis;
  readonly #variants: readonly Variant[];
  readonly #scale: GrowthScale;
  readonly #results: Results;
  readonly #commit: string;
  readonly #root: string;
  readonly #print: (line: string) => void;
  readonly #callers: Caller[] = [];

  constructor(
    axis: Axis,
    variants: readonly Variant[],
    scale: GrowthScale,
    results: Results,
    commit: string,
    root: string,
    print: (line: string) => void,
  ) {
    this.#axis = axis;
    this.#variants = variants;
    this.#scale = scale;
    this.#results = results;
    this.#commit = commit;
    this.#root = root;
    this.#print = print;
  }

  async run(): Promise<void> {
    // A variant that has all its results is not filled and started again.
    const open = this.#variants.filter((variant) =>
      this.#rounds().some((round) => works.some((work) => this.#isOpen(variant, work, round))),
    );
    for (const variant of open) await this.#start(variant);
    for (const work of works)
      for (const caller of this.#callers) await caller.measure(work, this.#scale.warmUpSeconds);
    for (const round of this.#rounds()) {
      for (const work of works) await this.#round(work, round);
      this.#print(`${this.#axis}: round ${round + 1} of ${this.#scale.rounds}`);
    }
  }

  async #start(variant: Variant): Promise<void> {
    const startedMs = performance.now();
    const deployment = await Deployment.start(this.#folderOf(variant), variant);
    this.#callers.push(new Caller(deployment, this.#axis));
    const seconds = (performance.now() - startedMs) / 1_000;
    this.#print(`${variant[this.#axis]} ${this.#axis}: filled and started in ${seconds.toFixed(0)} s`);
  }

  /**
   * Measures each variant once. Each round starts with another variant, so that other load on the machine
   * affects all of them.
   */
  async #round(work: Work, round: number): Promise<void> {
    for (let turn = 0; turn < this.#callers.length; turn += 1) {
      const caller = this.#callers[(turn + round) % this.#callers.length];
      if (caller === undefined || !this.#isOpen(caller.deployment.variant, work, round)) continue;
      const { variant } = caller.deployment;
      const { turns, errors, seconds, latencies, cpuMs } = await caller.measure(work, this.#scale.seconds);
      this.#results.add({
        ...this.#keyOf(variant, work, round),
        turns,
        errors,
        seconds,
        p50Ms: latencies.percentile(0.5),
        cpuMs,
      });
    }
  }

  #isOpen(variant: Variant, work: Work, round: number): boolean {
    return !this.#results.has(this.#keyOf(variant, work, round));
  }

  #keyOf(variant: Variant, work: Work, round: number): Key {
    return { commit: this.#commit, axis: this.#axis, variant, work, round };
  }

  #rounds(): number[] {
    return [...Array(this.#scale.rounds).keys()];
  }

  #folderOf(variant: Variant): string {
    return join(this.#root, `${this.#axis}-${variant[this.#axis]}`);
  }

  /** Stops the coordinators and deletes their states, because the next axis needs the disk space. */
  async stop(): Promise<void> {
    await Promise.all(this.#callers.splice(0).map(({ deployment }) => deployment.stop()));
    for (const variant of this.#variants)
      rmSync(this.#folderOf(variant), { recursive: true, force: true, maxRetries: 5 });
  }
}
