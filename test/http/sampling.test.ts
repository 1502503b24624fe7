import { v4 as uuid } from "uuid";
import { expect, test } from "vitest";
import { isLogged } from "../../src/http/sampling.ts";

const operator = { role: "operator", keyId: "k", cell: null, expiresAtMs: 0 } as const;
const cell = { role: "cell", keyId: "k", cell: "1", expiresAtMs: 0 } as const;

test("failures of the service and changes by operators are always logged", () => {
  const requestId = "id";
  expect(isLogged({ requestId, principal: cell }, "PUT", 503, 0)).toBe(true);
  expect(isLogged({ requestId }, "GET", 500, 0)).toBe(true);
  expect(isLogged({ requestId, principal: operator }, "POST", 200, 0)).toBe(true);
  expect(isLogged({ requestId, principal: operator }, "POST", 409, 0)).toBe(true);
  expect(isLogged({ requestId, principal: operator }, "GET", 200, 0)).toBe(false);
  expect(isLogged({ requestId, principal: cell }, "PUT", 201, 0)).toBe(false);
  expect(isLogged({ requestId }, "GET", 401, 0)).toBe(false);
  expect(isLogged({ requestId }, "GET", 200, 1)).toBe(true);
});

test.each([
  ["random", () => uuid()],
  ["numbered", (n: number) => `request-${n}`],
])("about the wanted share of %s ids is logged, and a larger share contains a smaller one", (_, idOf) => {
  const ids = Array.from({ length: 20_000 }, (_each, n) => idOf(n));
  const logged = (share: number): string[] =>
    ids.filter((requestId) => isLogged({ requestId }, "GET", 200, share));
  for (const share of [0.01, 0.1, 0.5]) {
    const count = logged(share).length;
    // Six standard deviations.
    const tolerance = 6 * Math.sqrt(ids.length * share * (1 - share));
    expect(Math.abs(count - ids.length * share)).toBeLessThan(tolerance);
    expect(logged(share)).toEqual(logged(share));
  }
  const larger = new Set(logged(0.1));
  expect(logged(0.01).filter((id) => !larger.has(id))).toEqual([]);
});
