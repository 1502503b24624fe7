import type { Source, Subject } from "../../src/core/messages.ts";
import type { BucketTypeName } from "../../src/core/registry.ts";
import type { LocalLease, LocalLeases } from "../../src/cell/reconcile.ts";
import type { LocalFault } from "./weather.ts";

/** One of the few names that all cells fight for. */
export interface Name {
  type: BucketTypeName;
  canonical: string;
}

/** A row of the cell's own table, whose name is claimed. */
export interface LocalRow extends Name {
  value: string;
  subject: Subject;
  source: Source;
}

/** What one local transaction does. */
export interface LocalChange {
  puts: LocalRow[];
  removes: Name[];
  outstanding: LocalLease;
}

export const nameKey = ({ type, canonical }: Name): string => `${type}:${canonical}`;

/** The database did not do it, or nobody knows whether it did. */
export class LocalFailure extends Error {
  readonly isUnknown: boolean;

  constructor(isUnknown: boolean) {
    super(isUnknown ? "the connection to the database was lost" : "the statement failed");
    this.isUnknown = isUnknown;
  }
}

/** A cell's database. It survives the cell's process; its transactions are all or nothing. */
export class LocalDatabase implements LocalLeases {
  readonly rows = new Map<string, LocalRow>();
  readonly outstanding = new Map<string, LocalLease>();
  /** After each transaction. */
  onChange: (change: LocalChange) => void = () => {};
  readonly #fault: () => LocalFault | undefined;

  constructor(fault: () => LocalFault | undefined) {
    this.#fault = fault;
  }

  /** The rows and the outstanding lease, in one transaction. */
  commit(change: LocalChange): void {
    this.#carryOut(() => {
      for (const name of change.removes) this.rows.delete(nameKey(name));
      for (const row of change.puts) this.rows.set(nameKey(row), row);
      this.outstanding.set(change.outstanding.uuid, change.outstanding);
      this.onChange(change);
    });
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    return this.#carryOut(() => {
      const rows = [...this.outstanding.values()].toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1));
      return rows.filter(({ uuid }) => uuid > afterUuid).slice(0, limit);
    });
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    return this.#carryOut(() => uuids.flatMap((uuid) => this.outstanding.get(uuid) ?? []));
  }

  async remove(uuid: string): Promise<void> {
    this.#carryOut(() => this.outstanding.delete(uuid));
  }

  #carryOut<T>(work: () => T): T {
    const fault = this.#fault();
    if (fault === undefined) return work();
    if (fault === "local_unknown_done") work();
    throw new LocalFailure(fault !== "local_failed");
  }
}
