import { bytesToHex } from "@noble/hashes/utils.js";

export const hexOf = (bytes: ArrayBuffer): string => bytesToHex(new Uint8Array(bytes));
