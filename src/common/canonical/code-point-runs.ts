/**
 * Maps every code point to a small number, as runs in ascending order. A binary search in it saves a megabyte
 * of memory.
 */
interface CodePointRuns {
  readonly starts: Uint32Array;
  readonly values: Uint8Array;
}

/**
 * Decodes a table of runs, `length.value` in base 36. Every value of the committed tables fits into a byte.
 */
export function decodeRuns(text: string): CodePointRuns {
  const tokens = tokensOf(text);
  const starts = new Uint32Array(tokens.length);
  const values = new Uint8Array(tokens.length);
  let next = 0;
  tokens.forEach((token, index) => {
    const [length = "", value = ""] = token.split(".");
    starts[index] = next;
    values[index] = fromBase36(value);
    next += fromBase36(length);
  });
  return { starts, values };
}

export function valueAt({ starts, values }: CodePointRuns, codePoint: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((starts[middle] ?? 0) <= codePoint) low = middle;
    else high = middle - 1;
  }
  return values[low] ?? 0;
}

/** Decodes a table at its first use. An isolate that never gets a non-ASCII value decodes no table. */
export function lazily<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

export function tokensOf(text: string): string[] {
  return text.trim().split(/\s+/);
}

export function fromBase36(digits: string): number {
  return Number.parseInt(digits, 36);
}
