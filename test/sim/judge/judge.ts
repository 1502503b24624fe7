import type { Reply } from "../../../src/core/messages.ts";
import { nameKey, type LocalChange } from "../local.ts";
import type { Sent, Witness } from "../network.ts";
import type { Part } from "../part.ts";
import { Evidence } from "./evidence.ts";
import { LedgerWatch } from "./ledger-watch.ts";
import { MessageWatch } from "./message-watch.ts";
import { ShardWatch } from "./shard-watch.ts";

/** Sees everything: what is durable everywhere, every message, every local transaction. Throws what is wrong the moment it is. */
export class Judge extends Evidence implements Pick<Witness, "sent" | "answered"> {
  readonly #ledgers = new LedgerWatch(this);
  readonly #shards = new ShardWatch(this);
  readonly #messages = new MessageWatch(this);

  /** After every step. */
  observe(): void {
    this.#refresh();
    for (const [cell, part] of this.coordinator.ledgers)
      this.#checkWakeUp(part, () => [...this.facts.values()].some((fact) => fact.cell === cell && fact.state !== "GRANTED" && !fact.isApplied));
    for (const [index, part] of this.coordinator.shards.entries()) this.#checkWakeUp(part, () => (this.images[index]?.holds.size ?? 0) > 0);
  }

  /** A local transaction of a cell has committed. */
  saved(cell: string, change: LocalChange): void {
    this.#refresh();
    for (const name of change.removes) this.inUse.delete(nameKey(name));
    for (const row of change.puts) {
      const key = nameKey(row);
      const owner = this.inUse.get(key);
      this.check("I1", owner === undefined || owner === cell, () => `${key} is in use by cell ${owner} and now by cell ${cell}`);
      this.inUse.set(key, cell);
      this.#shards.checkProtected(key);
    }
  }

  sent(call: Sent): void {
    this.#refresh();
    this.#messages.sent(call);
  }

  answered(call: Sent, reply: Reply<unknown>): void {
    this.#refresh();
    this.#messages.answered(call, reply);
  }

  /** Reads whatever became durable since the last look. */
  #refresh(): void {
    this.#ledgers.refresh();
    this.#shards.refresh();
  }

  #checkWakeUp(part: Part<object>, hasWork: () => boolean): void {
    // What is on its way to the disk may be the end of that work.
    if (part.current?.isAdmitted !== true || part.isAwaited || (part.alarmLost && !part.isLossKnown) || part.disk.pending > 0) return;
    this.check("I11", !hasWork(), () => `${part.name} has unfinished work and no alarm`);
  }
}
