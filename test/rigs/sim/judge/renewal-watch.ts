import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { Lease } from "../../../../src/coordinator/kernel/messages.ts";
import type { RenewRequest } from "../../../../src/coordinator/capabilities/renewals/ledger.ts";
import type { Sent } from "../network.ts";
import type { Evidence } from "./evidence.ts";
import { factKey } from "./rows.ts";

interface Arrival {
  /** Whether the lease was decided, durably, before the message arrived. */
  wasDecided: boolean;
  wentBack: number;
}

/** Checks that renewals are of granted leases, and durable before they are answered. */
export class RenewalWatch {
  readonly #evidence: Evidence;
  readonly #arrivals = new WeakMap<Sent, Arrival>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  delivered(call: Sent): void {
    const found = this.#ledgerOf(call);
    if (found === undefined) return;
    const { lease } = call.message as RenewRequest;
    const fact = this.#evidence.facts.get(factKey(found.cell, lease));
    const wasDecided = fact !== undefined && fact.state !== "GRANTED";
    this.#arrivals.set(call, { wasDecided, wentBack: found.part.disk.wentBack });
  }

  answered(call: Sent, reply: Result<unknown>): void {
    const found = this.#ledgerOf(call);
    const arrival = this.#arrivals.get(call);
    if (!reply.ok || found === undefined || arrival === undefined) return;
    const { lease, state } = reply.value as Lease;
    const { disk } = found.part;
    if (arrival.wentBack !== disk.wentBack) return;
    this.#evidence.check(
      "I40",
      !arrival.wasDecided && state === "GRANTED",
      () => `lease ${lease} of cell ${found.cell} was decided, and then renewed`,
    );
    const [row] = disk.readDurable<{ state: string; renewed_at_ms: number | null }>(
      `SELECT state, renewed_at_ms FROM lease WHERE lease = '${lease}'`,
    );
    this.#evidence.check(
      "I40",
      row === undefined || row.state !== "GRANTED" || row.renewed_at_ms !== null,
      () => `the ledger of cell ${found.cell} has answered a renewal of ${lease}, which is not durable`,
    );
    this.#evidence.see("C8");
  }

  #ledgerOf({ method, to }: Sent) {
    if (method !== "renew") return undefined;
    for (const [cell, part] of this.#evidence.coordinator.ledgers)
      if (part.name === to) return { cell, part };
    return undefined;
  }
}
