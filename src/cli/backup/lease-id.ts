import { createHash } from "node:crypto";

/** Returns a UUID of version 8 that is made from a hash, so the same content has the same lease (B2). */
export function leaseIdOf(content: unknown): string {
  const bytes = createHash("sha256").update(JSON.stringify(content)).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
