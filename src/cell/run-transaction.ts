import type { TransactionResult } from "./local.ts";

interface TransactionParts<Tx, T> {
  /** From BEGIN to COMMIT or ROLLBACK, as drizzle does it. */
  transaction: (body: (tx: Tx) => Promise<T>) => Promise<T>;
  body: (tx: Tx) => Promise<T>;
  /** Whether an error of COMMIT means that nothing was saved. */
  isAbort: (error: unknown) => boolean;
}

/** Transactions that ended while their bodies were still at work. */
const endedEarly = new WeakSet<object>();

/**
 * Throws when the transaction has ended already. A driver may have connected anew behind it (postgres-js does), and a lease that was written then
 * would be saved at once, without the rows that it is for.
 */
export function requireOpen(tx: unknown): void {
  if (typeof tx === "object" && tx !== null && endedEarly.has(tx))
    throw new Error("the local transaction is over: its connection was lost");
}

/**
 * One local transaction, and what became of it. Before the body has ended nothing can have been saved; after that the error has to tell. Answers only when
 * the body has settled, also where the driver gives the transaction up before that: a begin that is under way must not be granted behind the
 * back of the caller, who rolls back what was begun.
 */
export async function runTransaction<Tx, T>({
  transaction,
  body,
  isAbort,
}: TransactionParts<Tx, T>): Promise<TransactionResult<T>> {
  const tracked = new TrackedBody(body);
  try {
    return { kind: "committed", value: await transaction((tx) => tracked.run(tx)) };
  } catch (error) {
    if (!tracked.isHandedOver) return { kind: "rolled_back", error: await tracked.abandon(error) };
    return isAbort(error) ? { kind: "rolled_back", error } : { kind: "unknown", error };
  }
}

type BodyOutcome<T> = { value: T } | { error: unknown };

class TrackedBody<Tx, T> {
  readonly #body: (tx: Tx) => Promise<T>;
  #tx: Tx | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #thrown: { error: unknown } | undefined;
  #isAbandoned = false;
  /** COMMIT may have been sent. */
  isHandedOver = false;

  constructor(body: (tx: Tx) => Promise<T>) {
    this.#body = body;
  }

  async run(tx: Tx): Promise<T> {
    this.#tx = tx;
    const ending = this.#end(tx);
    this.#ended = ending;
    const ended = await ending;
    // The driver hears no more of it: on a connection made anew, its COMMIT or ROLLBACK could end somebody else's transaction.
    if (this.#isAbandoned) return new Promise<never>(() => {});
    if ("value" in ended) {
      this.isHandedOver = true;
      return ended.value;
    }
    this.#thrown = ended;
    throw ended.error;
  }

  /** Once the body has ended: the error that tells most. A rollback that failed in addition would hide the body's. */
  async abandon(error: unknown): Promise<unknown> {
    this.#isAbandoned = true;
    if (typeof this.#tx === "object" && this.#tx !== null) endedEarly.add(this.#tx);
    await this.#ended;
    return this.#thrown === undefined ? error : this.#thrown.error;
  }

  async #end(tx: Tx): Promise<BodyOutcome<T>> {
    try {
      return { value: await this.#body(tx) };
    } catch (error) {
      return { error };
    }
  }
}
