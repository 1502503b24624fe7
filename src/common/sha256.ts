import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

type Sha256 = (text: string) => string;

const utf8 = new TextEncoder();

/** The function of the runtime, if it has a synchronous one. */
let native: Sha256 | undefined;

/** SHA-256 of a text in UTF-8, as hexadecimal digits. */
export const sha256Of: Sha256 = (text) =>
  native === undefined ? bytesToHex(sha256(utf8.encode(text))) : native(text);

/** Hashes with a function of the runtime from now on. */
export const useSha256 = (own: Sha256): void => {
  native = own;
};

/** The first words of 32 bits of a hash. */
export const wordsOf = (hex: string): [number, number, number, number] => [
  Number.parseInt(hex.slice(0, 8), 16),
  Number.parseInt(hex.slice(8, 16), 16),
  Number.parseInt(hex.slice(16, 24), 16),
  Number.parseInt(hex.slice(24, 32), 16),
];
