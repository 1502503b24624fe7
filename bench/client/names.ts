import { readFileSync } from "node:fs";

const real = readFileSync(new URL("../../demo/data/routes-10k.txt", import.meta.url), "utf8")
  .trimEnd()
  .split("\n");

/**
 * Generates names that are not claimed yet: real names with a number behind them, so that their lengths are
 * realistic. `run` separates the names of different processes.
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

  /** Names that are the same for every peer and run. */
  static kept(mark: string, count: number): string[] {
    return real.slice(0, count).map((name) => `${name}-${mark}`);
  }
}
