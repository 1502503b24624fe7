import type { OperatorCall } from "../../kernel/messages.ts";
import type { Identities } from "./identities.ts";

/** Replaces the identities, if they still are those that the operator has read (A4). */
export interface ChangeIdentities extends OperatorCall {
  /** The position of those identities. */
  position: number;
  identities: Identities;
}
