/**
 * The form of a source id that sorts bytewise as the API promises (rule R3): decimal ids as numbers, before all others; the others by
 * bytes. `7` → `00017`, `42` → `000242`, `x` → `1x`. Leading zeros sort right after the number without them, so that no two ids share a form.
 */
export function sourceOrder(id: string): string {
  if (!/^\d+$/.test(id)) return `1${id}`;
  const digits = id.replace(/^0+(?=\d)/, "");
  const zeros = id.length - digits.length;
  return `0${pad(digits.length)}${digits}${zeros === 0 ? "" : pad(zeros)}`;
}

// Ids have at most 128 bytes (limits.ts), so three digits hold every length.
const pad = (length: number): string => String(length).padStart(3, "0");

/** Compares as UTF-8 bytes do, and so as SQLite does: JavaScript's own order differs above U+FFFF. */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return bytewise(left) - bytewise(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all others: moves them behind U+FFFF. */
function bytewise(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
