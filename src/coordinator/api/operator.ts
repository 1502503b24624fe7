import type { Principal } from "../auth/principal.ts";
import type { Operator } from "../kernel/messages.ts";
import { bytesOf } from "../../common/ids.ts";
import type { Limits } from "../../common/limits.ts";
import type { Result } from "../kernel/refusal.ts";
import { invalid } from "./batch.ts";

/** Who makes a change, for its audit entry (O1). */
export const operatorOf = (
  { principal, requestId }: { principal: Principal; requestId: string },
  reason: string | undefined,
): Operator => ({ keyId: principal.keyId, requestId, reason: reason ?? null });

/** Checks the text in which an operator says why. It is stored, and may be left out of some calls. */
export function reasonFault(reason: string | undefined, { reasonBytes }: Limits): Result<never> | undefined {
  if (reason === undefined) return undefined;
  if (reason.trim() === "") return invalid("reason", "must say why you do this");
  if (!reason.isWellFormed() || /[^\P{Cc}\n\t]/u.test(reason))
    return invalid("reason", "must be text without control characters");
  return bytesOf(reason) > reasonBytes
    ? invalid("reason", `must have at most ${reasonBytes} bytes of UTF-8`)
    : undefined;
}
