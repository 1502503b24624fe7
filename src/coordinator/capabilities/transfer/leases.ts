import type { Limits } from "../../../common/limits.ts";
import type { AuditTrail } from "../../kernel/audit-trail.ts";
import type { KindAnswers, KindBegin, LeaseKind } from "../../kernel/ledger/lease-kind.ts";
import type { LeaseRow } from "../../kernel/ledger/lease-table.ts";
import type { BeginRequest, Decision, HeldKey, Prepare } from "../../kernel/messages.ts";
import { refused, type Refusal } from "../../kernel/refusal.ts";
import type { Slot } from "../../kernel/slot.ts";
import { recordOfGrant, type TransferStore } from "./ledger-store.ts";
import type { PreparedShard, TransferTerms } from "./messages.ts";
import { decodeRange, encodeRange } from "./range.ts";

interface Needs {
  readonly cell: string;
  readonly limits: Limits;
  readonly audit: Slot<AuditTrail>;
  readonly transferStore: TransferStore;
}

/** The leases of transfers, which hold a scope on every shard (Y1). */
export class TransferLeases implements LeaseKind {
  readonly decidedElsewhere = refused(
    "FAILED_PRECONDITION",
    "the lease belongs to a transfer; cut or abort the transfer instead",
    { reason: "LEASE_OF_TRANSFER" },
  );
  readonly #part: Needs;

  constructor(part: Needs) {
    this.#part = part;
  }

  of(request: BeginRequest): KindBegin | undefined {
    return request.transfer === undefined ? undefined : new Preparing(this.#part, request.transfer);
  }

  /** No begin waits for the end of a range hold (Y3). */
  holds({ range }: HeldKey): boolean {
    return range !== undefined;
  }

  countOpen(): number {
    return this.#part.transferStore.countOpen();
  }

  told(stored: string): Partial<Decision> {
    return { transfer: decodeRange(stored) };
  }
}

/** The begin of a transfer's lease. */
class Preparing implements KindBegin {
  readonly #part: Needs;
  readonly #terms: TransferTerms;

  constructor(part: Needs, terms: TransferTerms) {
    this.#part = part;
    this.#terms = terms;
  }

  get stored(): string {
    return encodeRange(this.#terms);
  }

  get asker(): string {
    return this.#terms.from;
  }

  get mostAtOnce(): number {
    return this.#part.limits.openTransfers;
  }

  tooMany(): Refusal {
    const { from } = this.#terms;
    return refused(
      "RESOURCE_EXHAUSTED",
      `cell ${from} already prepares ${this.mostAtOnce} transfers to this cell; retry when some are prepared`,
      { reason: "TOO_MANY_TRANSFERS", retryAfterMs: 1_000 },
    ).refusal;
  }

  /** The ledger of the source knows its revoked keys, and the Worker has asked it (Y7). */
  get isForeign(): boolean {
    return this.#terms.party === "from";
  }

  prepareOn(shard: number): Pick<Prepare, "transfer"> {
    const { from, scope, unchanged } = this.#terms;
    const moved = unchanged?.[shard] ?? { epoch: 0, count: 0 };
    return { transfer: { from, scope, ...(unchanged === undefined ? {} : { unchanged: moved }) } };
  }

  get released(): Pick<Decision, "transfer"> {
    const { from, scope } = this.#terms;
    return { transfer: { from, scope } };
  }

  /** A cell can't take a scope in which it has nothing from those that use it (Y2). */
  refuseGrant(answers: KindAnswers): Refusal | undefined {
    if (!preparedOf(answers).every(({ from }) => from.count === 0)) return undefined;
    return emptyScope(this.#terms.from);
  }

  granted(request: BeginRequest, row: LeaseRow, answers: KindAnswers): void {
    const { transferStore, audit, cell, limits } = this.#part;
    const { keptTransfers, switchBackS } = limits;
    const sinceMs = row.created_at_ms - switchBackS * 1_000;
    transferStore.forget(this.#terms.from, keptTransfers - 1, sinceMs);
    transferStore.write(recordOfGrant(request, row, preparedOf(answers)));
    const { caller, requestId, lease } = request;
    if (caller.role !== "operator") return;
    const { state, created_at_ms, creates, destroys, replaces, missing } = row;
    audit.current.append(
      { keyId: caller.keyId, requestId, reason: this.#terms.reason },
      {
        action: "prepare_transfer",
        cell,
        target: lease,
        before: null,
        after: { state, created_at_ms, creates, destroys, replaces, missing },
      },
    );
  }
}

const preparedOf = (answers: KindAnswers): PreparedShard[] =>
  answers.flatMap(({ shard, epoch, counted }) =>
    counted === undefined ? [] : [{ shard, epoch, ...counted }],
  );

const emptyScope = (from: string): Refusal =>
  refused(
    "FAILED_PRECONDITION",
    `cell ${from} has no claims with \`scope\`, so there is nothing to move; check \`from\` and \`scope\``,
    { reason: "SCOPE_EMPTY" },
  ).refusal;
