import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { DecideRequest } from "../../../../src/coordinator/kernel/messages.ts";
import type { SeenContradictions } from "../../../../src/coordinator/capabilities/status/messages.ts";
import type { ReportedStatus, StoredStatus } from "../../../../src/coordinator/capabilities/status/status.ts";
import type { Part } from "../part.ts";
import type { Evidence } from "./evidence.ts";

interface Seen {
  version: number;
  wentBack: number;
  last: StoredStatus | undefined;
  /** Every report that was durable at some time. */
  readonly stored: Set<string>;
  /** The last count of contradictions, and by how much it has grown in all. */
  count: number;
  counted: number;
  /** Contradictions that were answered. */
  contradicted: number;
}

const NOTHING = { version: -1, wentBack: 0, last: undefined, count: 0, counted: 0, contradicted: 0 };

const idOf = ({ sdk, reportedAtMs }: StoredStatus): string => `${sdk.version} at ${reportedAtMs}`;

/**
 * Checks that reports and contradictions are durable before they are answered, and that a ledger stores only
 * so many reports.
 */
export class StatusWatch {
  readonly #evidence: Evidence;
  readonly #ledgers = new Map<string, Seen>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  refresh(): void {
    for (const part of this.#evidence.coordinator.ledgers.values()) this.#read(part);
  }

  answered(ledger: string, reply: Result<unknown>): void {
    if (!reply.ok) {
      if (reply.refusal.reason === "STATUS_TOO_EARLY") this.#evidence.see("U3");
      return;
    }
    const id = idOf(reply.value as ReportedStatus);
    this.#evidence.check(
      "I34",
      this.#ledgers.get(ledger)?.stored.has(id) === true,
      () => `${ledger} has answered the report ${id}, which is not durable`,
    );
    this.#evidence.see("U2");
  }

  /** Checks that a contradiction is counted durably before it is answered. */
  decided(ledger: string, { caller, outcome }: DecideRequest, reply: Result<unknown>): void {
    if (reply.ok || caller.role !== "cell" || outcome !== "COMMITTED") return;
    const { code, reason } = reply.refusal;
    if (reason !== "LEASE_ROLLED_BACK" && code !== "NOT_FOUND") return;
    const seen = this.#ledgers.get(ledger) ?? { ...NOTHING, stored: new Set() };
    seen.contradicted += 1;
    this.#evidence.check(
      "I34",
      seen.counted >= seen.contradicted,
      () => `${ledger} has answered ${seen.contradicted} contradictions, and counted ${seen.counted}`,
    );
    this.#evidence.see("U4");
  }

  #read({ name, disk }: Part<object>): void {
    const seen = this.#ledgers.get(name) ?? { ...NOTHING, stored: new Set() };
    if (seen.version === disk.version && seen.wentBack === disk.wentBack) return;
    const isRestored = seen.wentBack !== disk.wentBack;
    const hasTable = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'meta'").length > 0;
    const read = (value: string): unknown => {
      const [row] = hasTable
        ? disk.readDurable<{ value: string }>(`SELECT value FROM meta WHERE name = '${value}'`)
        : [];
      return row === undefined ? undefined : JSON.parse(row.value);
    };
    const next = read("status") as StoredStatus | undefined;
    const count = (read("contradictions") as SeenContradictions | undefined)?.count ?? 0;
    const counted = seen.counted + Math.max(0, count - seen.count);
    if (next !== undefined) {
      const pauseMs = next.reportedAtMs - (seen.last?.reportedAtMs ?? 0);
      // A clock that has gone back makes nobody wait.
      this.#evidence.check(
        "I34",
        isRestored || pauseMs <= 0 || pauseMs >= this.#evidence.coordinator.limits.statusEveryMs,
        () => `${name} has stored two reports within ${pauseMs} ms`,
      );
      seen.stored.add(idOf(next));
    }
    const { version, wentBack } = disk;
    this.#ledgers.set(name, { ...seen, version, wentBack, last: next, count, counted });
  }
}
