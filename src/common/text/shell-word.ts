/** Writes an argument so that a POSIX shell reads it back. */
export function shellWord(text: string): string {
  if (/^[\w./:@%+=,-]+$/.test(text)) return text;
  if (!/[\p{C}\p{Zl}\p{Zp}]/u.test(text)) return `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return `$'${[...new TextEncoder().encode(text)].map(byteOf).join("")}'`;
}

const byteOf = (byte: number): string => {
  const char = String.fromCodePoint(byte);
  return /[\w ./:@-]/.test(char) ? char : `\\x${byte.toString(16).padStart(2, "0")}`;
};

/** A command with its arguments, to copy into a shell. Parts that are undefined are left out. */
export const commandLine = (...words: readonly (string | undefined)[]): string =>
  ["leasehold", ...words.filter((word) => word !== undefined).map(shellWord)].join(" ");
