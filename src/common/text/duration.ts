const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/** The largest two units of a duration, such as `3d 4h`. */
export function durationText(ms: number): string {
  let rest = Math.max(0, Math.floor(ms / 1_000));
  const parts: string[] = [];
  for (const [unit, seconds] of units) {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    if (count > 0 || (unit === "s" && parts.length === 0)) parts.push(`${count}${unit}`);
  }
  return parts.slice(0, 2).join(" ");
}

/** Reads `90`, `90s`, `10m`, `2h` or `30d` as seconds. Undefined: it is none of them. */
export function secondsOf(text: string): number | undefined {
  const [, digits, unit = "s"] = /^(\d{1,9})([smhd]?)$/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const [, seconds = 1] = units.find(([name]) => name === unit) ?? [];
  return Number(digits) * seconds;
}
