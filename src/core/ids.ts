import type { Limits } from "./limits.ts";

/** What is wrong with the id of a subject or source. */
export function idFault(id: string, { idBytes }: Limits): string | undefined {
  if (id === "") return "is empty";
  if (!id.isWellFormed()) return "is not well-formed text";
  if (/\p{Cc}/u.test(id)) return "holds a control character";
  return bytesOf(id) > idBytes ? `is longer than ${idBytes} bytes of UTF-8` : undefined;
}

export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
