import type { Result } from "../kernel/refusal.ts";
import { invalid } from "../api/batch.ts";
import type { Incoming } from "../api/incoming.ts";
import { GRPC_TIMEOUT, GRPC_TIMEOUT_FORM, grpcTimeoutMs } from "./grpc-timeout.ts";

/** No deadline may be later than this. */
export const MAX_TIMEOUT_MS = 600_000;

/** Returns why the deadline of a call is refused (W4). Undefined: it has none, or a good one. */
export function deadlineFault(incoming: Incoming): Result<never> | undefined {
  const isGrpc = incoming.header("content-type")?.startsWith("application/grpc") === true;
  const name = isGrpc ? GRPC_TIMEOUT : "connect-timeout-ms";
  const sent = incoming.header(name);
  if (sent === undefined) return undefined;
  const timeoutMs = isGrpc ? grpcTimeoutMs(sent) : /^\d{1,10}$/.test(sent) ? Number(sent) : undefined;
  if (timeoutMs === undefined) return invalid(name, isGrpc ? GRPC_TIMEOUT_FORM : "must be 1 to 10 digits");
  return timeoutMs > MAX_TIMEOUT_MS ? invalid(name, "must be at most 10 minutes") : undefined;
}
