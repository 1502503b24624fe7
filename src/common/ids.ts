import type { Limits } from "./limits.ts";

/** Returns what is wrong with the id of a subject or source, or undefined for a valid id. */
export function idFault(id: string, { idBytes }: Limits): string | undefined {
  if (id === "") return "is empty";
  if (!id.isWellFormed()) return "is not well-formed text";
  if (/\p{Cc}/u.test(id)) return "contains a control character";
  // A code unit takes at most three bytes, so nearly no id has to be encoded.
  return 3 * id.length > idBytes && bytesOf(id) > idBytes
    ? `is longer than ${idBytes} bytes of UTF-8`
    : undefined;
}

export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
