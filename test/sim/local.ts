import type { Source, Subject } from "../../src/core/messages.ts";
import type { BucketTypeName } from "../../src/core/registry.ts";
import type { LocalLease, LocalLeases } from "../../src/cell/reconcile.ts";

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

/** A cell's database. It survives the cell's process; its transactions are all or nothing. */
export class LocalDatabase implements LocalLeases {
  readonly rows = new Map<string, LocalRow>();
  readonly outstanding = new Map<string, LocalLease>();
  /** After each transaction. */
  onChange: (change: LocalChange) => void = () => {};

  /** The rows and the outstanding lease, in one transaction. */
  commit(change: LocalChange): void {
    for (const name of change.removes) this.rows.delete(nameKey(name));
    for (const row of change.puts) this.rows.set(nameKey(row), row);
    this.outstanding.set(change.outstanding.uuid, change.outstanding);
    this.onChange(change);
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    const rows = [...this.outstanding.values()].toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1));
    return rows.filter(({ uuid }) => uuid > afterUuid).slice(0, limit);
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    return uuids.flatMap((uuid) => this.outstanding.get(uuid) ?? []);
  }

  async remove(uuid: string): Promise<void> {
    this.outstanding.delete(uuid);
  }
}
