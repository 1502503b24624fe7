import type { Record as ClaimRecord } from "../../client/api-types.ts";
import type { NamedClaim } from "./named.ts";

/** A name of a row that nobody has: `value` where the row's claim has another name instead. */
export interface Missing {
  action: "create";
  kind: "missing" | "different";
  because: "no_claim" | "value";
  want: NamedClaim;
}

/** A claim of the right name that is about another row or subject, or spelled otherwise. It changes hands without ever being free. */
export interface Different {
  action: "replace";
  kind: "different";
  because: "row" | "subject" | "spelling";
  want: NamedClaim;
  record: ClaimRecord;
}

/** A claim that no row stands for any more. */
export interface Extra {
  action: "destroy";
  kind: "extra" | "different";
  because: "row_gone" | "not_claimed" | "value";
  record: ClaimRecord;
}

/** Where rows and claims do not agree, and what mends it. */
export type Drift = Missing | Different | Extra;

/** A drift that nothing is done about, and why: `other_cell` and `duplicate` need a person. */
export type LeftBecause =
  /** Another cell has the name. */
  | "other_cell"
  /** Two rows of this cell have the same name. */
  | "duplicate"
  /** It cannot be a name. */
  | "unnameable"
  /** A lease holds it at the moment. */
  | "leased"
  /** Changed within the protected time, here or there. */
  | "recent"
  /** The claim is of a table or column that this run does not look at. */
  | "not_verified"
  /** A row still needs the name, so its claim is not given up. */
  | "wanted"
  /** It was put right by somebody else meanwhile, or changed again. */
  | "changed";

export const rowOf = (drift: Drift): { type: string; id: string } =>
  drift.action === "destroy" ? drift.record.source : drift.want.source;

/** How many claims are wrong: a claim with another name than its row counts once, where it is to be given up. */
export const countsAs = ({ action, kind }: Drift): "missing" | "different" | "extra" | undefined =>
  action === "create" && kind === "different" ? undefined : kind;
