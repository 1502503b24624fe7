import type { LocalLease, LocalLeases } from "../../../src/users/cell/reconcile.ts";

interface MemoryRow {
  uuid: string;
  createdAtMs: number;
}

type LocalCall = "list" | "has" | "remove" | "fence" | "removeFences" | "queueForVerification";

/** A cell's table of outstanding leases, in memory. */
export class MemoryLocal implements LocalLeases {
  readonly rows = new Map<string, MemoryRow>();
  /** The times at which fences were written, by UUID. */
  readonly fences = new Map<string, number>();
  readonly queued: string[] = [];
  /** Leases that an open local transaction is about to save. */
  readonly inFlight = new Set<string>();
  /** Runs before each call. It may throw to fail the call. */
  before: (call: LocalCall, uuids: readonly string[]) => void = () => {};
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async list({ afterUuid, limit }: { afterUuid: string; limit: number }): Promise<LocalLease[]> {
    this.before("list", []);
    const uuids = [...this.rows.keys()].toSorted().filter((uuid) => uuid > afterUuid);
    return uuids.slice(0, limit).flatMap((uuid) => this.#lease(uuid));
  }

  async has(uuids: readonly string[]): Promise<LocalLease[]> {
    this.before("has", uuids);
    return uuids.flatMap((uuid) => this.#lease(uuid));
  }

  async remove(uuid: string): Promise<void> {
    this.before("remove", [uuid]);
    this.rows.delete(uuid);
  }

  async fence(uuid: string): Promise<"fenced" | "saved" | "in_flight"> {
    this.before("fence", [uuid]);
    if (this.inFlight.has(uuid)) return "in_flight";
    if (this.rows.has(uuid)) return "saved";
    this.fences.set(uuid, this.fences.get(uuid) ?? this.#now());
    return "fenced";
  }

  async removeFences(olderThanMs: number): Promise<number> {
    this.before("removeFences", []);
    const old = [...this.fences].filter(([, writtenMs]) => this.#now() - writtenMs >= olderThanMs);
    for (const [uuid] of old) this.fences.delete(uuid);
    return old.length;
  }

  async queueForVerification(uuid: string): Promise<void> {
    this.before("queueForVerification", [uuid]);
    if (this.rows.delete(uuid)) this.queued.push(uuid);
  }

  #lease(uuid: string): LocalLease[] {
    const row = this.rows.get(uuid);
    return row === undefined ? [] : [{ uuid, ageMs: this.#now() - row.createdAtMs }];
  }
}
