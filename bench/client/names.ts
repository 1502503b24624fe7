import { readFileSync } from "node:fs";

const real = readFileSync(new URL("../../demo/data/routes-10k.txt", import.meta.url), "utf8")
  .trimEnd()
  .split("\n");

/**
 * Names that nobody has: real ones, and behind them real ones with a number, so that their lengths are those
 * of names. `run` keeps apart what different processes make.
 */
export class Names {
  readonly #run: string;
  #next = 0;

  constructor(run: string) {
    this.#run = run;
  }

  fresh(count: number): string[] {
    return Array.from({ length: count }, () => {
      const index = this.#next++;
      return `${real[index % real.length] ?? ""}-${this.#run}${Math.floor(index / real.length)}`;
    });
  }

  /** The same for every peer and run. */
  static kept(mark: string, count: number): string[] {
    return real.slice(0, count).map((name) => `${name}-${mark}`);
  }
}
