import type { Source, Subject } from "../../../src/core/messages.ts";
import type { BucketTypeName, SourceTypeName } from "../../../src/core/registry.ts";
import { compareBytes, sourceOrder } from "../../../src/core/source-order.ts";
import type { SourceRow } from "../../../src/cell/changes.ts";
import type { NewLocalLease } from "../../../src/cell/local.ts";
import type { LocalLease, LocalLeases } from "../../../src/cell/reconcile.ts";
import {
  rowKey,
  type IdRange,
  type QueuePage,
  type QueuedRow,
  type VerifiedRow,
} from "../../../src/cell/verification/ports.ts";
import type { LocalFault } from "./weather.ts";

/** One of the few names that all cells fight for. */
export interface Name {
  type: BucketTypeName;
  canonical: string;
}

/** A name that is claimed, and the row of the cell's table that it stands in: names with one source are of one row. */
export interface LocalRow extends Name {
  value: string;
  subject: Subject;
  source: Source;
}

/** What one local transaction does to the rows. */
export interface LocalChange {
  puts: readonly LocalRow[];
  removes: readonly Name[];
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
  /** By UUID, when they were saved, and the rows that they are for. */
  readonly outstanding = new Map<string, { savedMs: number; sources: readonly SourceRow[] }>();
  /** By UUID, when they were written. */
  readonly fences = new Map<string, number>();
  /** Rows to be verified. */
  readonly queued = new Map<string, QueuedRow>();
  /** After each transaction. */
  onChange: (change: LocalChange) => void = () => {};
  /** After each change of rows for which nobody was asked. */
  onDrift: (change: LocalChange) => void = () => {};
  /** Where a verification is; `sinceMs`: when it began. */
  #progress: { text: string; savedMs: number; sinceMs: number } | undefined;
  /** When a row was changed last, as the database's clock had it. */
  readonly #changedMs = new Map<string, number>();
  readonly #fault: () => LocalFault | undefined;
  readonly #now: () => number;

  constructor(fault: () => LocalFault | undefined, now: () => number) {
    this.#fault = fault;
    this.#now = now;
  }

  /** The rows and the outstanding lease, in one transaction. */
  commit(change: LocalChange, { uuid, sources }: NewLocalLease): void {
    // The fence has the key: the row of the lease cannot be written, and with it nothing can.
    if (this.fences.has(uuid)) throw new LocalFailure(false);
    this.#carryOut(() => {
      this.#change(change);
      this.outstanding.set(uuid, { savedMs: this.#now(), sources });
      this.onChange(change);
    });
  }

  /** By plain SQL, as applications do now and then: nobody is asked. `queued`: as if a lease had been rolled back although its rows were saved. */
  drift(change: LocalChange, queued: readonly QueuedRow[]): void {
    this.#carryOut(() => {
      this.#change(change);
      for (const row of queued) this.queued.set(rowKey(row), row);
      this.onDrift(change);
    });
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    return this.#carryOut(() => {
      const uuids = [...this.outstanding.keys()].toSorted().filter((uuid) => uuid > afterUuid);
      return uuids.slice(0, limit).flatMap((uuid) => this.#lease(uuid));
    });
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    return this.#carryOut(() => uuids.flatMap((uuid) => this.#lease(uuid)));
  }

  async remove(uuid: string): Promise<void> {
    this.#carryOut(() => this.outstanding.delete(uuid));
  }

  async fence(uuid: string): Promise<"fenced" | "saved"> {
    return this.#carryOut(() => {
      if (this.outstanding.has(uuid)) return "saved";
      if (!this.fences.has(uuid)) this.fences.set(uuid, this.#now());
      return "fenced";
    });
  }

  async removeFences(olderThanMs: number): Promise<number> {
    return this.#carryOut(() => {
      const old = [...this.fences].filter(([, writtenMs]) => this.#now() - writtenMs >= olderThanMs);
      for (const [uuid] of old) this.fences.delete(uuid);
      return old.length;
    });
  }

  async queueForVerification(leaseUuid: string): Promise<void> {
    this.#carryOut(() => {
      for (const row of this.outstanding.get(leaseUuid)?.sources ?? [])
        this.queued.set(rowKey(row), { ...row, leaseUuid });
      this.outstanding.delete(leaseUuid);
    });
  }

  hasRow(row: SourceRow): boolean {
    return this.#changedMs.has(rowKey(row));
  }

  /** Since it was changed last; undefined where it is gone. */
  ageOf(row: SourceRow): number | undefined {
    const changedMs = this.#changedMs.get(rowKey(row));
    return changedMs === undefined ? undefined : this.#now() - changedMs;
  }

  /** How many rows of a table there are. */
  async count(type: SourceTypeName): Promise<number> {
    return this.#carryOut(() => this.#table(type).length);
  }

  async page(
    type: SourceTypeName,
    { after, upTo, limit }: IdRange & { limit: number },
  ): Promise<VerifiedRow[]> {
    const isBehind = (id: string, other: string): boolean =>
      other === "" || compareBytes(sourceOrder(id), sourceOrder(other)) > 0;
    return this.#carryOut(() => {
      const rows = this.#table(type).filter(
        ({ id }) => isBehind(id, after) && (upTo === undefined || !isBehind(id, upTo)),
      );
      return rows.slice(0, limit);
    });
  }

  async read(type: SourceTypeName, ids: readonly string[]): Promise<VerifiedRow[]> {
    return this.#carryOut(() => this.#table(type).filter(({ id }) => ids.includes(id)));
  }

  async loadProgress(): Promise<{ text: string; ageMs: number; sinceMs: number } | undefined> {
    return this.#carryOut(
      () => this.#progress && { ...this.#progress, ageMs: this.#now() - this.#progress.savedMs },
    );
  }

  async saveProgress(text: string, sinceMs: number): Promise<void> {
    this.#carryOut(() => {
      this.#progress = { text, savedMs: this.#now(), sinceMs };
    });
  }

  async listQueued({ after, limit }: QueuePage): Promise<QueuedRow[]> {
    const rest = (row: QueuedRow): boolean => after === undefined || rowKey(row) > rowKey(after);
    const inOrder = (one: QueuedRow, other: QueuedRow): number => (rowKey(one) < rowKey(other) ? -1 : 1);
    return this.#carryOut(() => [...this.queued.values()].filter(rest).toSorted(inOrder).slice(0, limit));
  }

  async removeFromQueue(rows: readonly QueuedRow[]): Promise<void> {
    this.#carryOut(() => {
      for (const row of rows)
        if (this.queued.get(rowKey(row))?.leaseUuid === row.leaseUuid) this.queued.delete(rowKey(row));
    });
  }

  /** The rows that a change is about, as they are before it. */
  rowsOf({ puts, removes }: LocalChange): SourceRow[] {
    const before = [...puts, ...removes].flatMap((name) => this.rows.get(nameKey(name)) ?? []);
    return [...before, ...puts].map(({ source }) => source);
  }

  #change(change: LocalChange): void {
    const touched = this.rowsOf(change);
    for (const name of change.removes) this.rows.delete(nameKey(name));
    for (const row of change.puts) this.rows.set(nameKey(row), row);
    const present = new Set([...this.rows.values()].map(({ source }) => rowKey(source)));
    for (const key of touched.map(rowKey)) {
      if (present.has(key)) this.#changedMs.set(key, this.#now());
      else this.#changedMs.delete(key);
    }
  }

  /** In source order. */
  #table(type: SourceTypeName): VerifiedRow[] {
    const bySource = Map.groupBy(
      [...this.rows.values()].filter(({ source }) => source.type === type),
      ({ source }) => source.id,
    );
    const rows = [...bySource].map(([id, names]) => ({
      id,
      claims: names.map(claimOf),
      ageMs: this.ageOf({ type, id }),
    }));
    return rows.toSorted((a, b) => compareBytes(sourceOrder(a.id), sourceOrder(b.id)));
  }

  #lease(uuid: string): LocalLease[] {
    const lease = this.outstanding.get(uuid);
    return lease === undefined ? [] : [{ uuid, ageMs: this.#now() - lease.savedMs }];
  }

  #carryOut<T>(work: () => T): T {
    const fault = this.#fault();
    if (fault === undefined) return work();
    if (fault === "local_unknown_done") work();
    throw new LocalFailure(fault !== "local_failed");
  }
}

const claimOf = ({ type, value, subject, source }: LocalRow): VerifiedRow["claims"][number] => ({
  bucket: { type, value },
  subject,
  source,
  attribute: type,
});
