import { keyOf } from "./names.ts";

/**
 * Records every local commit of both cells in order, and who has each name at that moment. The final check
 * only compares the final state. The witness also notices a name that two cells had for a while.
 */
export class Witness {
  readonly #owners = new Map<string, string>();
  readonly violations: string[] = [];
  /** Names that passed from one cell to the other. */
  readonly handedOver = new Set<string>();
  readonly #former = new Map<string, string>();

  recordTake(cell: string, name: string): void {
    const key = keyOf(name);
    const owner = this.#owners.get(key);
    if (owner !== undefined)
      this.violations.push(`${name}: cell ${cell} saved it while cell ${owner} had it`);
    const former = this.#former.get(key);
    if (former !== undefined && former !== cell) this.handedOver.add(key);
    this.#owners.set(key, cell);
    this.#former.set(key, cell);
  }

  recordRelease(cell: string, name: string): void {
    const key = keyOf(name);
    if (this.#owners.get(key) !== cell)
      this.violations.push(`${name}: cell ${cell} released it without having it`);
    this.#owners.delete(key);
  }
}
