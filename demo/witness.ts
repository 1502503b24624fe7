import { keyOf } from "./names.ts";

/**
 * Sees every local commit of both cells in the order in which they happen, as no real cell could, and
 * remembers who has which name at that moment. The check at the end sees only the end; this sees a name that
 * two cells had for a while.
 */
export class Witness {
  readonly #owners = new Map<string, string>();
  readonly violations: string[] = [];
  /** Names that had more than one owner, one after the other. */
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
      this.violations.push(`${name}: cell ${cell} gave up what it did not have`);
    this.#owners.delete(key);
  }
}
