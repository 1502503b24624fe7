import { nameKey, type LocalChange, type Name } from "../local.ts";
import type { Evidence } from "./evidence.ts";
import { isClaimOf } from "./rows.ts";

/** Longer than any message can be late: a lease without a row by then will never get one. */
const FORGOTTEN_MS = 600_000;

interface Drift {
  cell: string;
  name: Name;
  sinceMs: number;
  /** Leases that change the claim without its row, and may still be applied. */
  leases: string[];
}

/**
 * Names whose rows and claims were made to differ on purpose. Such a row promises nothing: another cell may
 * own the name until row and claim agree again. From then on the name is in use like any other. All other
 * names are judged as usual.
 */
export class Drifts {
  readonly #evidence: Evidence;
  readonly #open = new Map<string, Drift>();
  /** When drift was last planted for a name. */
  readonly #lastMs = new Map<string, number>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** `lease`: the lease that changes a claim without its row. Undefined if the row was changed. */
  open(cell: string, name: Name, lease?: string): void {
    const key = `${cell}/${nameKey(name)}`;
    const sinceMs = this.#evidence.coordinator.nowMs();
    this.#lastMs.set(key, sinceMs);
    const leases = [...(this.#open.get(key)?.leases ?? []), ...(lease === undefined ? [] : [lease])];
    this.#open.set(key, { cell, name, sinceMs, leases });
    if (this.#evidence.inUse.get(nameKey(name)) === cell) this.#evidence.inUse.delete(nameKey(name));
  }

  /** Rows were changed without a lease. */
  changed(cell: string, { puts, removes }: LocalChange): void {
    for (const name of [...removes, ...puts]) this.open(cell, name);
  }

  has(cell: string, name: Name): boolean {
    return this.#open.has(`${cell}/${nameKey(name)}`);
  }

  /** Whether drift may have been planted since then. */
  isSince(cell: string, name: Name, ms: number): boolean {
    const key = `${cell}/${nameKey(name)}`;
    const open = this.#open.get(key);
    return (this.#lastMs.get(key) ?? -Infinity) >= ms || (open !== undefined && !this.#isOver(open));
  }

  /** Ends the drifts whose rows and claims agree again. Their names are in use from then on. */
  close(): void {
    for (const [key, drift] of this.#open) {
      const { cell, name } = drift;
      if (!this.#isOver(drift)) continue;
      if (drift.leases.length > 0) {
        // From now on the claim is as the lease left it.
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
        () => `cell ${cell} has the claim on ${nameKey(name)} again, but cell ${owner} uses the name`,
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
