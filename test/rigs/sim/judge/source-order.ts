const isDecimal = (id: string): boolean => /^[0-9]+$/.test(id);

/** The order of source ids as rule R3 has it: decimal ids as numbers first, the others by bytes. Which of 7 and 07 comes first is left open. */
export function compareSources(a: string, b: string): number {
  if (isDecimal(a) !== isDecimal(b)) return isDecimal(a) ? -1 : 1;
  return isDecimal(a) ? Number(BigInt(a) - BigInt(b)) : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
