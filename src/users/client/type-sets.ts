import type { Operations, TypesChange } from "./api-types.ts";
import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { valueOf } from "./errors.ts";

/** The declared types of a deployment, and which of them are in use. */
export type DeclaredTypes = Operations["getTypes"]["answer"];

/** What a change of the declared types did, or would do. */
export type TypesPlan = Operations["changeTypes"]["answer"];

/** The types that a deployment has declared. All but `list` is for operators. */
export class TypeSets {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Lists the types that claims can have now. Cells, routers, operators and viewers may. */
  async list(options: CallOptions = {}): Promise<DeclaredTypes["types"]> {
    return valueOf(await this.#caller.call("listTypes", options)).types;
  }

  async get(options: CallOptions = {}): Promise<DeclaredTypes> {
    return valueOf(await this.#caller.call("getTypes", options));
  }

  /**
   * Replaces the declared types, if they still have the `version` that was read; with `dry_run`, says what
   * that would change and what is refused. A repeated call does no harm.
   */
  async change(body: TypesChange, options: CallOptions = {}): Promise<TypesPlan> {
    return valueOf(await this.#caller.call("changeTypes", { ...options, body }));
  }
}
