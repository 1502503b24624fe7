import type { ExplainedIdentity, IdentitiesChange, IdentityQuestion, Operations } from "./api-types.ts";
import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";

/** Which certificates and tokens a deployment accepts beside keys. */
export type IdentitySet = Operations["getIdentities"]["answer"];

/** What a change of the identities did, or would do. */
export type IdentitiesPlan = Operations["changeIdentities"]["answer"];

/** The certificates and tokens that a deployment accepts. For operators. */
export class IdentitySets {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async get(options: CallOptions = {}): Promise<IdentitySet> {
    return valueOf(await this.#caller.call("getIdentities", options));
  }

  /** Says who the holder of a certificate is, and which id revokes it or a subject of tokens. */
  async explain(question: IdentityQuestion, options: CallOptions = {}): Promise<ExplainedIdentity> {
    return valueOf(await this.#caller.call("explainIdentity", { ...options, body: question }));
  }

  /**
   * Replaces the identities, if they still have the `version` that was read; with `dry_run`, says what that
   * would change. A repeated call does no harm.
   */
  async change(body: IdentitiesChange, options: CallOptions = {}): Promise<IdentitiesPlan> {
    return valueOf(await this.#caller.call("changeIdentities", { ...options, body }));
  }
}
