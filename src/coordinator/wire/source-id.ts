/**
 * The ids of sources in the protobuf are bytes: 8 of a whole number, big-endian, 16 of a UUID, or the UTF-8
 * of anything else. Their order as bytes is the order in which records are listed.
 */
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import { ok, type Result } from "../kernel/refusal.ts";
import { invalid } from "../api/batch.ts";

const INTEGER_BYTES = 8;
const UUID_BYTES = 16;
const MAX_INTEGER = 2n ** 64n - 1n;
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;
const DECIMAL = /^(?:0|[1-9]\d*)$/;

export function sourceIdOf(bytes: Uint8Array, field: string): Result<string> {
  if (bytes.length === INTEGER_BYTES) return ok(String(viewOf(bytes).getBigUint64(0)));
  if (bytes.length === UUID_BYTES)
    return ok(bytesToHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"));
  try {
    return ok(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return invalid(field, "must be 8 bytes of a whole number, 16 of a UUID, or UTF-8");
  }
}

export function bytesOfSourceId(id: string): Uint8Array {
  if (DECIMAL.test(id) && BigInt(id) <= MAX_INTEGER) {
    const bytes = new Uint8Array(INTEGER_BYTES);
    viewOf(bytes).setBigUint64(0, BigInt(id));
    return bytes;
  }
  if (UUID.test(id)) return hexToBytes(id.replaceAll("-", ""));
  return new TextEncoder().encode(id);
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);
