export const GRPC_TIMEOUT = "grpc-timeout";

/** What the header must be, as the end of a sentence. */
export const GRPC_TIMEOUT_FORM = "must be 1 to 8 digits and a unit: H, M, S, m, u or n";

const UNIT_MS = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 } as const;

/** Reads a deadline of gRPC, in milliseconds. Undefined: it has not the form that the protocol requires. */
export function grpcTimeoutMs(sent: string): number | undefined {
  const [, digits, unit = "m"] = /^(\d{1,8})([HMSmun])$/.exec(sent) ?? [];
  return digits === undefined ? undefined : Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
}
