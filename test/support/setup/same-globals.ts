/** Files of a project share their process, so none may leave a fake clock behind: later files would hang. */
import { afterAll, expect, vi } from "vitest";

const shared = globalThis as { firstGlobals?: readonly unknown[] };
const globalsNow = (): readonly unknown[] => [Date, setTimeout, clearTimeout, setInterval, fetch];
shared.firstGlobals ??= globalsNow();

afterAll(() => {
  // Vitest does the same afterwards. A mock of a fake timer brings that back.
  vi.restoreAllMocks();
  const left = globalsNow().filter((now, index) => now !== shared.firstGlobals?.[index]);
  expect(left, "this file has replaced globals").toEqual([]);
});
