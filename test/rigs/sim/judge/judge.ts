import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type { DecideRequest } from "../../../../src/coordinator/kernel/messages.ts";
import type { DigestRecordsAnswer } from "../../../../src/coordinator/capabilities/records/messages.ts";
import { nameKey, type LocalChange } from "../local.ts";
import type { Sent, Witness } from "../network.ts";
import type { Instance, Part } from "../part.ts";
import { AuditWatch } from "./audit-watch.ts";
import { ChangeWatch } from "./change-watch.ts";
import { DigestWatch } from "./digest-watch.ts";
import { Drifts } from "./drifts.ts";
import { Evidence } from "./evidence.ts";
import { FormatWatch } from "./format-watch.ts";
import { GrowthWatch } from "./growth-watch.ts";
import { LedgerWatch } from "./ledger-watch.ts";
import { MessageWatch } from "./message-watch.ts";
import { QueueWatch } from "./queue-watch.ts";
import { RenewalWatch } from "./renewal-watch.ts";
import { ScrubWatch } from "./scrub-watch.ts";
import { ShardWatch } from "./shard-watch.ts";
import { StatusWatch } from "./status-watch.ts";
import { TypeWatch } from "./type-watch.ts";
import type { RouteWatch, Routed } from "./route-watch.ts";
import { TransferWatch } from "./transfer-watch.ts";
import { VerificationWatch } from "./verification-watch.ts";

/**
 * Receives every durable write, every message and every local transaction, and throws a `Violation` as soon
 * as one happens.
 */
export class Judge extends Evidence implements Pick<Witness, "sent" | "answered"> {
  readonly drifts = new Drifts(this);
  readonly verifications = new VerificationWatch(this, this.drifts);
  readonly types = new TypeWatch(this);
  readonly audit = new AuditWatch(this);
  readonly statuses = new StatusWatch(this);
  readonly renewals = new RenewalWatch(this);
  readonly changes = new ChangeWatch(this);
  readonly growths = new GrowthWatch(this);
  readonly #scrubs = new ScrubWatch(this);
  /** Undefined in a run without routers. */
  routes: RouteWatch | undefined;
  readonly transfers = new TransferWatch(this);
  readonly #ledgers = new LedgerWatch(this, this.transfers, (fact) => this.verifications.decided(fact));
  readonly queues = new QueueWatch(this);
  readonly #shards = new ShardWatch(
    this,
    this.transfers,
    (hold) => {
      this.types.held(hold);
      this.queues.held(hold);
    },
    (from, to, claim) => this.changes.moved(from, to, claim),
  );
  readonly #messages = new MessageWatch(this);
  readonly #digests = new DigestWatch(this);
  readonly #formats = new FormatWatch(this);

  /** Called after every step. */
  observe(): void {
    this.#refresh();
    this.verifications.observe();
    this.queues.observe();
    for (const [cell, part] of this.coordinator.ledgers)
      this.#checkWakeUp(part, () =>
        [...this.facts.values()].some(
          (fact) => fact.cell === cell && fact.state !== "GRANTED" && !fact.isApplied,
        ),
      );
    for (const [index, part] of this.coordinator.allShards.entries())
      this.#checkWakeUp(part, () => this.#hasHolds(index));
  }

  #hasHolds(shard: number): boolean {
    const image = this.images[shard];
    return image !== undefined && image.holds.size + image.ranges.size > 0;
  }

  /** A local transaction of a cell has committed. */
  saved(cell: string, change: LocalChange): void {
    this.#refresh();
    for (const name of change.removes)
      if (this.inUse.get(nameKey(name)) === cell) this.inUse.delete(nameKey(name));
    for (const row of change.puts) {
      const key = nameKey(row);
      // A name with planted drift is in use only when the drift is over.
      if (this.drifts.has(cell, row)) continue;
      const owner = this.inUse.get(key);
      this.check(
        "I1",
        owner === undefined || owner === cell,
        () => `${key} is in use by cell ${owner} and now by cell ${cell}`,
      );
      this.inUse.set(key, cell);
      this.#shards.checkProtected(key);
    }
  }

  /** Rows of a cell were changed without a lease. */
  drifted(cell: string, change: LocalChange): void {
    this.#refresh();
    this.drifts.changed(cell, change);
  }

  sent(call: Sent): void {
    this.#refresh();
    this.#messages.sent(call);
    this.queues.sent(call);
    this.#formats.sent(call);
    if (call.method === "inquire") this.#digests.inquired(call);
    if (call.method === "changeTypes") this.types.sent(call);
  }

  delivered(call: Sent): void {
    if (call.method === "digestRecords") this.#digests.delivered(call);
    this.renewals.delivered(call);
    this.queues.delivered(call);
  }

  answered(call: Sent, reply: Result<unknown>, isHeard: boolean, by: Instance<object>): void {
    this.#refresh();
    this.#formats.answered(call, reply, by);
    this.#messages.answered(call, reply);
    this.renewals.answered(call, reply);
    this.queues.answered(call, reply, isHeard);
    if (call.method === "reportStatus") this.statuses.answered(call.to, reply);
    if (call.method === "decide") this.statuses.decided(call.to, call.message as DecideRequest, reply);
    if (call.method === "scrub") this.#scrubs.answered(call.to, reply);
    this.verifications.answered(call.method, call.message, reply);
    if (call.method === "digestRecords")
      this.#digests.answered(call, reply.ok ? (reply.value as DigestRecordsAnswer) : undefined);
  }

  /** A router has answered. */
  routed(routed: Routed): void {
    this.#refresh();
    this.routes?.answered(routed);
  }

  /** Reads everything that became durable since the last call. */
  #refresh(): void {
    // A hold must be later than the first use of its types.
    this.types.refresh();
    this.#ledgers.refresh();
    this.#shards.refresh();
    this.changes.refresh();
    this.growths.refresh();
    this.audit.refresh();
    this.statuses.refresh();
    this.routes?.refresh();
    this.transfers.refresh();
    this.#formats.refresh();
    this.drifts.close();
  }

  #checkWakeUp(part: Part<object>, hasWork: () => boolean): void {
    // A pending write may be what ends that work.
    if (
      part.current?.isAdmitted !== true ||
      part.isAwaited ||
      (part.alarmLost && !part.isLossKnown) ||
      part.disk.pending > 0
    )
      return;
    this.check("I11", !hasWork(), () => `${part.name} has unfinished work and no alarm`);
  }
}
