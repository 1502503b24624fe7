import type { Reply } from "../../../../src/core/messages.ts";
import type { ReportedStatus, StoredStatus } from "../../../../src/core/status.ts";
import type { Part } from "../part.ts";
import type { Evidence } from "./evidence.ts";

interface Seen {
  version: number;
  wentBack: number;
  last: StoredStatus | undefined;
  /** Every report that was durable at some time. */
  readonly stored: Set<string>;
}

const idOf = ({ sdk, reportedAtMs }: StoredStatus): string => `${sdk.version} at ${reportedAtMs}`;

/** Checks that a report is durable before it is answered, and that a ledger stores only so many. */
export class StatusWatch {
  readonly #evidence: Evidence;
  readonly #ledgers = new Map<string, Seen>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  refresh(): void {
    for (const part of this.#evidence.coordinator.ledgers.values()) this.#read(part);
  }

  answered(ledger: string, reply: Reply<unknown>): void {
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

  #read({ name, disk }: Part<object>): void {
    const seen = this.#ledgers.get(name) ?? { version: -1, wentBack: 0, last: undefined, stored: new Set() };
    if (seen.version === disk.version && seen.wentBack === disk.wentBack) return;
    const isRestored = seen.wentBack !== disk.wentBack;
    const hasTable = disk.readDurable("SELECT 1 FROM sqlite_master WHERE name = 'meta'").length > 0;
    const [row] = hasTable
      ? disk.readDurable<{ value: string }>("SELECT value FROM meta WHERE name = 'status'")
      : [];
    const next = row === undefined ? undefined : (JSON.parse(row.value) as StoredStatus);
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
    this.#ledgers.set(name, { ...seen, version: disk.version, wentBack: disk.wentBack, last: next });
  }
}
