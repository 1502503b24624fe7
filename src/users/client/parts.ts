import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";
import type { Operations, Part, PartReconciliation } from "./api-types.ts";

/** What a reconciliation did, or would do. */
export type Reconciliation = Operations["reconcilePart"]["answer"];

/** How far the scrub of a part is, and what it has found. */
export type ScrubStatus = Operations["getScrub"]["answer"];

/**
 * The shards (`shard-3`) and ledgers (`ledger-7`) of the deployment, to reconcile those that have gone back
 * in time. For operators.
 */
export class Parts {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async get(part: string, options: CallOptions = {}): Promise<Part> {
    return valueOf(await this.#caller.call("getPart", { ...options, params: { part } })).part;
  }

  /**
   * Accepts that a part has gone back in time; with `dry_run`, says what that would do. It may take two
   * minutes, so the client needs an `attemptMs` and a `deadlineMs` above that. A repeated call does no harm,
   * except that `declare_lost` declares a new loss each time. So the client does not retry such a call. If
   * its outcome is unknown, read the part before you repeat it.
   */
  async reconcile(
    part: string,
    body: PartReconciliation,
    options: CallOptions = {},
  ): Promise<Reconciliation> {
    const isRepeatable = body.dry_run || body.declare_lost !== true;
    return valueOf(
      await this.#caller.call("reconcilePart", { ...options, params: { part }, body, isRepeatable }),
    );
  }

  /** Takes a shard back into service, once every cell has verified. */
  async finish(part: string, body: { reason: string }, options: CallOptions = {}): Promise<Part> {
    return valueOf(await this.#caller.call("finishPart", { ...options, params: { part }, body })).part;
  }

  /** Reads what the scrub of a shard or ledger has found. */
  async scrubStatus(part: string, options: CallOptions = {}): Promise<ScrubStatus> {
    return valueOf(await this.#caller.call("getScrub", { ...options, params: { part } }));
  }

  /**
   * Checks the next rows of a shard or ledger. Repeat it while the answer has a `running` pass. With
   * `restart`, a new pass begins.
   */
  async scrub(part: string, body: { restart: boolean }, options: CallOptions = {}): Promise<ScrubStatus> {
    return valueOf(await this.#caller.call("stepScrub", { ...options, params: { part }, body }));
  }
}
