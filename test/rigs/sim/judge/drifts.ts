import { nameKey, type LocalChange, type Name } from "../local.ts";
import type { Evidence } from "./evidence.ts";
import { isClaimOf } from "./rows.ts";

/** Longer than any message is on its way: a lease that nobody has heard of by then never comes. */
const FORGOTTEN_MS = 600_000;

interface Drift {
  cell: string;
  name: Name;
  sinceMs: number;
  /** That change claims behind the back of their rows, and may still do so. */
  leases: string[];
}

/**
 * Names whose rows and claims somebody has set at odds on purpose. Such a row promises nothing: another cell may have the name, until row and claim
 * agree again. Then the name is in use like any other. Names of all other rows are judged as ever.
 */
export class Drifts {
  readonly #evidence: Evidence;
  readonly #open = new Map<string, Drift>();
  /** When a name was set at odds last. */
  readonly #lastMs = new Map<string, number>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** `lease`: of a claim that is changed without its row; none where the row was changed. */
  open(cell: string, name: Name, lease?: string): void {
    const key = `${cell}/${nameKey(name)}`;
    const sinceMs = this.#evidence.coordinator.nowMs();
    this.#lastMs.set(key, sinceMs);
    const leases = [...(this.#open.get(key)?.leases ?? []), ...(lease === undefined ? [] : [lease])];
    this.#open.set(key, { cell, name, sinceMs, leases });
    if (this.#evidence.inUse.get(nameKey(name)) === cell) this.#evidence.inUse.delete(nameKey(name));
  }

  /** Rows that were changed, and nobody was asked. */
  changed(cell: string, { puts, removes }: LocalChange): void {
    for (const name of [...removes, ...puts]) this.open(cell, name);
  }

  has(cell: string, name: Name): boolean {
    return this.#open.has(`${cell}/${nameKey(name)}`);
  }

  /** Whether row and claim may have been set at odds since then. */
  isSince(cell: string, name: Name, ms: number): boolean {
    const key = `${cell}/${nameKey(name)}`;
    const open = this.#open.get(key);
    return (this.#lastMs.get(key) ?? -Infinity) >= ms || (open !== undefined && !this.#isOver(open));
  }

  /** Those that agree again are in use. */
  close(): void {
    for (const [key, drift] of this.#open) {
      const { cell, name } = drift;
      if (!this.#isOver(drift)) continue;
      if (drift.leases.length > 0) {
        // From now on its claim is what the lease has made of it.
        this.#lastMs.set(key, this.#evidence.coordinator.nowMs());
        drift.leases = [];
      }
      const row = this.#evidence.rowsOf(cell).get(nameKey(name));
      const claim = this.#evidence.claimOn(name);
      if (row !== undefined && !isClaimOf(row, cell, claim)) continue;
      this.#open.delete(key);
      if (row === undefined) continue;
      const owner = this.#evidence.inUse.get(nameKey(name));
      this.#evidence.check(
        "I1",
        owner === undefined,
        () => `cell ${cell} has the claim on ${nameKey(name)} again, which cell ${owner} uses`,
      );
      this.#evidence.inUse.set(nameKey(name), cell);
      this.#evidence.see("a drift is over");
    }
  }

  #isOver({ cell, leases, sinceMs }: Drift): boolean {
    return leases.every((lease) => {
      if (this.#evidence.wasPruned(cell, lease)) return true;
      const fact = this.#evidence.factOf(cell, lease);
      if (fact !== undefined) return fact.state !== "GRANTED" && fact.isApplied;
      return this.#evidence.coordinator.nowMs() - sinceMs > FORGOTTEN_MS;
    });
  }
}
