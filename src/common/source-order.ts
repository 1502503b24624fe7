/**
 * Returns a sort key whose byte order is the order that the API promises (R3): decimal ids as numbers first,
 * then all other ids by bytes. `7` → `00017`, `42` → `000242`, `x` → `1x`. A number with leading zeros sorts
 * right after the number without them, so that no two ids have the same key.
 */
export function sourceOrder(id: string): string {
  if (!/^\d+$/.test(id)) return `1${id}`;
  const digits = id.replace(/^0+(?=\d)/, "");
  const zeros = id.length - digits.length;
  return `0${pad(digits.length)}${digits}${zeros === 0 ? "" : pad(zeros)}`;
}

/** Returns the id of a source order. */
export function sourceIdOf(order: string): string {
  if (!order.startsWith("0")) return order.slice(1);
  const end = 4 + Number(order.slice(1, 4));
  return "0".repeat(Number(order.slice(end))) + order.slice(4, end);
}

// Ids have at most 128 bytes (limits.ts), so three digits are enough for every length.
const pad = (length: number): string => String(length).padStart(3, "0");

/** Compares two strings by their UTF-8 bytes, as SQLite does. JavaScript's own order differs above U+FFFF. */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return bytewise(left) - bytewise(right);
  }
  return a.length - b.length;
}

/** Moves surrogates above U+FFFF, because they encode the largest code points. */
function bytewise(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
