import type { Bucket, Source, Subject } from "../../../src/users/client/api-types.ts";
import { compareBytes, sourceOrder } from "../../../src/common/source-order.ts";
import type { SourceRow } from "../../../src/users/cell/changes.ts";
import type { NewLocalLease } from "../../../src/users/cell/local.ts";
import type { LocalLease, LocalLeases } from "../../../src/users/cell/reconcile.ts";
import {
  rowKey,
  type IdRange,
  type QueuePage,
  type QueuedRow,
  type VerifiedRow,
} from "../../../src/users/cell/verification/ports.ts";
import { shipped } from "../../support/types.ts";
import type { LocalFault } from "./simulation-settings.ts";

/** One of the few names that all cells compete for. */
export interface Name {
  /** The number of the bucket type. */
  type: number;
  canonical: string;
}

/** A claimed name in a row of the cell's table. Names with the same source are in the same row. */
export interface LocalRow extends Name {
  value: string;
  subject: Subject;
  source: Source;
}

/** The row changes of one local transaction. */
export interface LocalChange {
  puts: readonly LocalRow[];
  removes: readonly Name[];
}

/** The name of a shipped bucket type. */
export function bucketTypeName(type: number): Bucket["type"] {
  const entry = shipped.numbered("bucket", type);
  if (entry === undefined) throw new Error(`${type} is not the number of a shipped bucket type`);
  return entry.name as Bucket["type"];
}

export const nameKey = ({ type, canonical }: Name): string => `${type}:${canonical}`;

/** The database failed. `isUnknown`: it is not known whether the change was made. */
export class LocalFailure extends Error {
  readonly isUnknown: boolean;

  constructor(isUnknown: boolean) {
    super(isUnknown ? "the connection to the database was lost" : "the statement failed");
    this.isUnknown = isUnknown;
  }
}

/** A cell's database. It survives the cell's process, and its transactions are atomic. */
export class LocalDatabase implements LocalLeases {
  readonly rows = new Map<string, LocalRow>();
  /** Outstanding leases by UUID: when they were saved, and the rows that they are for. */
  readonly outstanding = new Map<string, { savedMs: number; sources: readonly SourceRow[] }>();
  /** Fences by UUID, and when they were written. */
  readonly fences = new Map<string, number>();
  /** The verification queue. */
  readonly queued = new Map<string, QueuedRow>();
  /** Called after each transaction. */
  onChange: (change: LocalChange) => void = () => {};
  /** Called after each change of rows that was made without a lease. */
  onDrift: (change: LocalChange) => void = () => {};
  /** The saved cursor of a verification. `sinceMs`: when the verification began. */
  #progress: { text: string; savedMs: number; sinceMs: number } | undefined;
  /** When a row was last changed, by the database's clock. */
  readonly #changedMs = new Map<string, number>();
  readonly #fault: () => LocalFault | undefined;
  readonly #now: () => number;

  constructor(fault: () => LocalFault | undefined, now: () => number) {
    this.#fault = fault;
    this.#now = now;
  }

  /** Saves the rows and the outstanding lease in one transaction. */
  commit(change: LocalChange, { uuid, sources }: NewLocalLease): void {
    // A fence has the same primary key, so the lease row cannot be written and the transaction fails.
    if (this.fences.has(uuid)) throw new LocalFailure(false);
    this.#carryOut(() => {
      this.#change(change);
      this.outstanding.set(uuid, { savedMs: this.#now(), sources });
      this.onChange(change);
    });
  }

  /**
   * Changes rows by plain SQL, without a lease. `queued`: rows to queue for verification, as if their lease
   * had been rolled back although they were saved.
   */
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

  /** Time since the row was last changed. Undefined if the row does not exist. */
  ageOf(row: SourceRow): number | undefined {
    const changedMs = this.#changedMs.get(rowKey(row));
    return changedMs === undefined ? undefined : this.#now() - changedMs;
  }

  /** The number of rows of a table. */
  async count(type: Source["type"]): Promise<number> {
    return this.#carryOut(() => this.#table(type).length);
  }

  async page(
    type: Source["type"],
    { after, upTo, limit }: IdRange & { limit: number },
  ): Promise<VerifiedRow[]> {
    const isAfter = (id: string, other: string): boolean =>
      other === "" || compareBytes(sourceOrder(id), sourceOrder(other)) > 0;
    return this.#carryOut(() => {
      const rows = this.#table(type).filter(
        ({ id }) => isAfter(id, after) && (upTo === undefined || !isAfter(id, upTo)),
      );
      return rows.slice(0, limit);
    });
  }

  async read(type: Source["type"], ids: readonly string[]): Promise<VerifiedRow[]> {
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

  /** The rows that a change touches, as they are before it. */
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

  /** The rows of a table in source order. */
  #table(type: Source["type"]): VerifiedRow[] {
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

function claimOf({ type, value, subject, source }: LocalRow): VerifiedRow["claims"][number] {
  const name = bucketTypeName(type);
  return { bucket: { type: name, value }, subject, source, attribute: name };
}
