import type { Principal } from "../auth/principal.ts";
import type { Operator } from "../kernel/messages.ts";

/** Who makes a change, for its audit entry (O1). */
export const operatorOf = (
  { principal, requestId }: { principal: Principal; requestId: string },
  reason: string | undefined,
): Operator => ({ keyId: principal.keyId, requestId, reason: reason ?? null });
