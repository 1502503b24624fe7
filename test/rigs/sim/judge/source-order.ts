const isDecimal = (id: string): boolean => /^[0-9]+$/.test(id);

/**
 * The order of source ids as R3 defines it: decimal ids come first, as numbers, then all others by bytes. R3
 * does not define the order of 7 and 07.
 */
export function compareSources(a: string, b: string): number {
  if (isDecimal(a) !== isDecimal(b)) return isDecimal(a) ? -1 : 1;
  return isDecimal(a) ? Number(BigInt(a) - BigInt(b)) : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
