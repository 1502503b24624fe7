import type { Metadata } from "@grpc/grpc-js";

/** Bounds of all calls of a process. */
export interface CallLimits {
  /** How long a request may take to arrive, in milliseconds. */
  readMs: number;
  /** How many calls may be incomplete, and how many more may run. */
  calls: number;
  /** The bytes of their messages, from the first byte to the answer. */
  bytes: number;
  /** The same for calls of health and reflection whose requests are incomplete. */
  keylessCalls: number;
  keylessBytes: number;
  /** The size that the messages being decompressed may reach. */
  inflatingBytes: number;
}

const MIB = 1024 * 1024;

export const defaultLimits: CallLimits = {
  readMs: 10_000,
  calls: 1_000,
  bytes: 128 * MIB,
  keylessCalls: 100,
  keylessBytes: MIB,
  inflatingBytes: 64 * MIB,
};

/** The default of the coordinator's limit `body_bytes` is lower, so its own error is what clients see. */
export const MAX_MESSAGE_BYTES = 10 * MIB;

/** Requests of health and reflection are short. */
export const MAX_KEYLESS_BYTES = 16 * 1024;

export function metadataBytes(metadata: Metadata): number {
  let bytes = 0;
  for (const [name, values] of Object.entries(metadata.toHttp2Headers()))
    for (const value of [values ?? ""].flat()) bytes += name.length + String(value).length;
  return bytes;
}
