import { transactionEnded } from "./errors.ts";
import type { TransactionResult } from "./local.ts";

interface TransactionParts<Tx, T> {
  /** The driver's transaction, from BEGIN to COMMIT or ROLLBACK. */
  transaction: (body: (tx: Tx) => Promise<T>) => Promise<T>;
  body: (tx: Tx) => Promise<T>;
  mark: TransactionMark<Tx>;
  /** Whether an error of COMMIT means that nothing was saved. */
  isAbort: (error: unknown) => boolean;
}

/** Transactions that ended while their bodies were still running. */
const endedEarly = new WeakSet<object>();

/**
 * Throws if the transaction has already ended. The driver may have reconnected since (postgres-js does), and
 * a lease written on the new connection would be saved at once, without its rows.
 */
export function requireOpen(tx: unknown): void {
  if (typeof tx === "object" && tx !== null && endedEarly.has(tx))
    throw new Error("the local transaction has ended, because its connection was lost: run it again");
}

/** Notes that a transaction begins. Some drivers use the same object for each transaction on a connection. */
export function noteBegin(tx: unknown): void {
  if (typeof tx === "object" && tx !== null) endedEarly.delete(tx);
}

/** How a dialect recognizes a transaction that is still the same one. */
export interface TransactionMark<Tx> {
  /** Sets what does not outlive the transaction. */
  set: (tx: Tx) => Promise<void>;
  /** Whether the mark is gone. Called once, at the end. */
  isGone: (tx: Tx) => Promise<boolean>;
  /**
   * Answers the error of the transaction if the error of its body shows that the database has undone it.
   * Otherwise undefined: then the mark tells.
   */
  undoneBy: (tx: Tx, error: unknown) => unknown;
}

type Failure = Exclude<TransactionResult<never>, { kind: "committed" }>;
type BodyOutcome<T> = { kind: "returned"; value: T } | Failure;

/**
 * Notices that the body has ended its transaction: with COMMIT, ROLLBACK or DDL, or by catching the error of
 * a deadlock. What it wrote before COMMIT is saved, and what it writes afterwards is saved at once, each
 * without its claims.
 */
async function outcomeOf<Tx, T>(
  mark: TransactionMark<Tx>,
  body: (tx: Tx) => Promise<T>,
  tx: Tx,
): Promise<BodyOutcome<T>> {
  try {
    await mark.set(tx);
    const [ran] = await Promise.allSettled([body(tx)]);
    if (ran.status === "fulfilled") {
      if (await mark.isGone(tx)) return { kind: "ended", error: transactionEnded() };
      return { kind: "returned", value: ran.value };
    }
    const undone = mark.undoneBy(tx, ran.reason);
    if (undone !== undefined) return { kind: "rolled_back", error: undone };
    // A transaction that failed, or lost its connection, cannot answer, and saves nothing.
    if (await mark.isGone(tx).catch(() => false))
      return { kind: "ended", error: transactionEnded(ran.reason) };
    throw ran.reason;
  } catch (error) {
    return { kind: "rolled_back", error };
  }
}

/**
 * Runs one local transaction and answers its outcome. Before the body has ended, nothing can have been saved.
 * After that, the error decides. It always waits for the body, even if the driver abandons the transaction
 * earlier, because a begin that is in progress must not be granted after the caller has rolled back.
 */
export async function runTransaction<Tx, T>({
  transaction,
  body,
  mark,
  isAbort,
}: TransactionParts<Tx, T>): Promise<TransactionResult<T>> {
  const tracked = new TrackedBody((tx: Tx) => outcomeOf(mark, body, tx));
  try {
    return { kind: "committed", value: await transaction((tx) => tracked.run(tx)) };
  } catch (error) {
    if (!tracked.isHandedOver) return tracked.abandon(error);
    return isAbort(error) ? { kind: "rolled_back", error } : { kind: "unknown", error };
  }
}

class TrackedBody<Tx, T> {
  readonly #body: (tx: Tx) => Promise<BodyOutcome<T>>;
  #tx: Tx | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #failure: Failure | undefined;
  #isAbandoned = false;
  /** Whether COMMIT may have been sent. */
  isHandedOver = false;

  constructor(body: (tx: Tx) => Promise<BodyOutcome<T>>) {
    this.#body = body;
  }

  async run(tx: Tx): Promise<T> {
    this.#tx = tx;
    noteBegin(tx);
    const ending = this.#body(tx);
    this.#ended = ending;
    const ended = await ending;
    // Never resolves: on a new connection, the driver's COMMIT or ROLLBACK could end another transaction.
    if (this.#isAbandoned) return new Promise<never>(() => {});
    if (ended.kind === "returned") {
      this.isHandedOver = true;
      return ended.value;
    }
    this.#failure = ended;
    throw ended.error;
  }

  /** Waits for the body. Answers its error rather than that of a failed rollback, because it says more. */
  async abandon(error: unknown): Promise<Failure> {
    this.#isAbandoned = true;
    if (typeof this.#tx === "object" && this.#tx !== null) endedEarly.add(this.#tx);
    await this.#ended;
    return this.#failure ?? { kind: "rolled_back", error };
  }
}
