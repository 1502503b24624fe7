import type { Result } from "../../../../src/coordinator/kernel/refusal.ts";
import type {
  BeginRequest,
  Decision,
  Exchange,
  ExchangeAnswer,
  Inquiry,
  InquiryAnswer,
  Prepare,
  SettleAnswer,
} from "../../../../src/coordinator/kernel/messages.ts";
import type { PrepareTransfer } from "../../../../src/coordinator/capabilities/transfer/messages.ts";
import type { Sent } from "../network.ts";
import type { Instance } from "../part.ts";
import { BeginOrder } from "./begin-order.ts";
import type { Evidence } from "./evidence.ts";
import { attemptOf, factKey } from "./rows.ts";

/** Checks every message and every answer when it is sent. */
export class MessageWatch {
  readonly #evidence: Evidence;
  readonly #order: BeginOrder;
  readonly #attempts = new Map<string, string>();
  readonly #prepared = new Set<string>();

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
    this.#order = new BeginOrder(evidence);
  }

  sent({ from, to, method, message }: Sent): void {
    if (method === "begin") {
      const { lease, caller, isVerification } = message as BeginRequest;
      const key = factKey(to.slice("ledger ".length), lease);
      if (isVerification === true) {
        this.#evidence.verified.add(key);
        if (caller.role === "operator") this.#evidence.broughtForward.add(key);
      }
      this.#evidence.keysOf.set(key, (this.#evidence.keysOf.get(key) ?? new Set()).add(caller.keyId));
    }
    if (method === "prepareTransfer") {
      const { transfer, caller } = message as PrepareTransfer;
      const key = factKey(to.slice("ledger ".length), transfer);
      this.#evidence.keysOf.set(key, (this.#evidence.keysOf.get(key) ?? new Set()).add(caller.keyId));
    }
    if (method !== "exchange") return;
    const { decisions, prepares } = message as Exchange;
    if (new Set([...decisions, ...prepares].map(({ lease }) => lease)).size > 1) this.#evidence.see("N1");
    for (const decision of decisions) this.#sentDecision(decision);
    const shard = Number(to.slice("shard ".length));
    for (const prepare of prepares) this.#sentPrepare(from as Instance<unknown>, shard, prepare);
  }

  answered({ from, to, method, message }: Sent, reply: Result<unknown>): void {
    if (method === "begin")
      this.#order.ended(factKey(to.slice("ledger ".length), (message as BeginRequest).lease));
    if (!reply.ok) {
      if (reply.refusal.reason === "CELL_FROZEN" && this.#evidence.frozen.has(to.slice("ledger ".length)))
        this.#heldFreeze();
      if (reply.refusal.reason === "CELL_DRAINING") this.#evidence.see("X1");
      if (reply.refusal.reason === "PLACEMENT_MISMATCH") this.#evidence.see("P1");
      if (/taking over or handing over/.test(reply.refusal.detail)) this.#evidence.see("G8");
      if (/a transfer holds a scope/.test(reply.refusal.detail)) this.#evidence.see("G10");
      return;
    }
    if (method === "exchange") this.#answeredExchange(to, message as Exchange, reply.value as ExchangeAnswer);
    if (method === "inquire") this.#answeredInquiry(to, message as Inquiry, reply.value as InquiryAnswer);
    if (method === "settle")
      for (const state of (reply.value as SettleAnswer).states) this.#evidence.see(`settled ${state}`);
    if (method === "confirm") this.#evidence.see(`confirmed ${from.name}`);
  }

  #heldFreeze(): void {
    this.#evidence.see("I17");
    this.#evidence.see("a freeze held");
  }

  #sentDecision({ cell, lease, outcome, epoch, ...attempt }: Decision): void {
    const fact = this.#evidence.facts.get(factKey(cell, lease));
    if (epoch !== null) {
      // While a precommit waits for its message, another call may abort the transfer.
      const isSame = outcome === "PRECOMMITTED" ? fact !== undefined : fact?.state === outcome;
      const isDurable = isSame || this.#evidence.pruned.has(factKey(cell, lease));
      this.#evidence.check(
        "I7",
        isDurable,
        () => `cell ${cell} sent ${outcome} of lease ${lease}, but its row has ${fact?.state ?? "nothing"}`,
      );
      this.#evidence.see("C2");
      return;
    }
    const isGranted =
      fact?.execution?.incarnation === attempt.incarnation && fact.execution.counter === attempt.counter;
    this.#evidence.check(
      "I7",
      !isGranted,
      () => `cell ${cell} released attempt ${attemptOf(cell, attempt)} of lease ${lease}, which is granted`,
    );
    this.#evidence.released.add(attemptOf(cell, attempt));
    this.#evidence.see("B6");
  }

  #sentPrepare(from: Instance<unknown>, shard: number, { cell, lease, transfer, ...attempt }: Prepare): void {
    const name = attemptOf(cell, attempt);
    const user = `${lease} by instance ${from.serial}`;
    const before = this.#attempts.get(name);
    this.#evidence.check(
      "I8",
      before === undefined || before === user,
      () => `attempt ${name} belongs to lease ${lease}, but belonged to lease ${before}`,
    );
    this.#attempts.set(name, user);
    const prepareId = `${name}@${shard}`;
    this.#evidence.check(
      "I8",
      !this.#prepared.has(prepareId),
      () => `the prepare of attempt ${name} was sent to shard ${shard} twice`,
    );
    this.#prepared.add(prepareId);
    this.#evidence.see("B3");
    if (transfer === undefined) this.#order.asks(factKey(cell, lease), name, from.serial, shard);
  }

  #answeredExchange(to: string, exchange: Exchange, answer: ExchangeAnswer): void {
    const { prepares } = exchange;
    this.#order.answered(exchange, answer);
    // The shard has carried out nothing, so the ledger may send the prepares again (H5).
    if (answer.isUnchecked === true) {
      for (const { cell, ...attempt } of prepares)
        this.#prepared.delete(`${attemptOf(cell, attempt)}@${to.slice("shard ".length)}`);
      this.#evidence.see("unchecked");
      return;
    }
    const kinds = new Set(answer.prepares.map(({ granted }) => granted));
    if (kinds.has(false)) this.#evidence.see("B4");
    if (kinds.size > 1 && new Set(prepares.map(({ lease }) => lease)).size > 1) this.#evidence.see("N2");
  }

  #answeredInquiry(to: string, { shard, questions }: Inquiry, { verdicts }: InquiryAnswer): void {
    const cell = to.slice("ledger ".length);
    for (const [index, question] of questions.entries()) {
      const verdict = verdicts[index];
      const name = `attempt ${attemptOf(cell, question)} of lease ${question.lease} of cell ${cell}`;
      const { grantedBy = shard } = question;
      const execution = `${attemptOf(cell, question)}@${grantedBy}#${question.epoch}`;
      this.#evidence.see(`verdict ${verdict}`);
      this.#evidence.see("B8");
      const isStillHeld = [...(this.#evidence.images[shard]?.holds.values() ?? [])].some(
        (hold) => hold.epoch === question.epoch,
      );
      if (!isStillHeld) this.#evidence.see("M1");
      const fact = this.#evidence.facts.get(factKey(cell, question.lease));
      const isIt =
        fact?.execution?.incarnation === question.incarnation && fact.execution.counter === question.counter;
      const isThis = isIt && fact.execution?.epochs[grantedBy] === question.epoch;
      switch (verdict) {
        case "gone":
          this.#evidence.calledGone.add(execution);
          this.#evidence.check(
            "I9",
            !isThis || (fact.state !== "GRANTED" && fact.isApplied),
            () => `${name} is ${fact?.state} but was called gone`,
          );
          break;
        case "granted":
          this.#evidence.check(
            "I9",
            isThis || this.#evidence.pruned.has(factKey(cell, question.lease)),
            () => `${name} was called granted, but has no such row`,
          );
          break;
        case "committed":
        case "rolled_back": {
          const state = verdict === "committed" ? "COMMITTED" : "ROLLED_BACK";
          this.#evidence.check(
            "I9",
            isIt && fact.state === state,
            () => `${name} was called ${verdict}, but its row has ${fact?.state ?? "nothing"}`,
          );
          break;
        }
        default:
      }
    }
  }
}
