/** A number with separators, such as `12,400`. */
export const countText = (count: number): string => count.toLocaleString("en-US");

const units = [
  [1_000_000_000, "GB"],
  [1_000_000, "MB"],
  [1_000, "kB"],
] as const;

export function sizeText(bytes: number): string {
  const [least, unit] = units.find(([each]) => bytes >= each) ?? [1, "B"];
  const amount = bytes / least;
  return `${amount.toFixed(amount < 10 && least > 1 ? 1 : 0)} ${unit}`;
}
