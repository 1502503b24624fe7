import type { DecideRequest } from "../../kernel/messages.ts";
import { readMeta, writeMeta } from "../../kernel/meta.ts";
import type { Ports } from "../../kernel/ports.ts";
import type { Result } from "../../kernel/refusal.ts";
import type { SeenContradictions } from "./messages.ts";

/** A report may have any number. The count stays an integer that D1 can store. */
const MAX_COUNT = 1_000_000_000;

/**
 * How often the cell has saved rows whose names it doesn't have, as far as the ledger knows (U4). The count
 * is durable, because an instance may end before anybody has read what it has counted.
 */
export class Contradictions {
  readonly #ports: Pick<Ports, "sql" | "clock">;

  constructor(ports: Pick<Ports, "sql" | "clock">) {
    this.#ports = ports;
  }

  /** Null: there was none. */
  get seen(): SeenContradictions | null {
    const value = readMeta(this.#ports.sql, "contradictions");
    return typeof value === "string" ? (JSON.parse(value) as SeenContradictions) : null;
  }

  /** Must be called in the transaction that answers the decision. */
  decided({ caller, outcome }: DecideRequest, result: Result<unknown>): void {
    if (caller.role !== "cell" || outcome !== "COMMITTED" || result.ok) return;
    const { code, reason } = result.refusal;
    if (reason === "LEASE_ROLLED_BACK" || code === "NOT_FOUND") this.add(1);
  }

  /** Must be called in a transaction. The time only grows, so that a later one is always recognized (M4). */
  add(count: number): void {
    const before = this.seen ?? { count: 0, lastAtMs: 0 };
    const lastAtMs = Math.max(this.#ports.clock.now(), before.lastAtMs + 1);
    const total = Math.min(MAX_COUNT, before.count + count);
    writeMeta(this.#ports.sql, "contradictions", JSON.stringify({ count: total, lastAtMs }));
  }
}
