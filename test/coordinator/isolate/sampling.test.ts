import { afterEach, expect, test, vi } from "vitest";
import { isLogged } from "../../../src/coordinator/isolate/sampling.ts";

const operator = { role: "operator", keyId: "k", cell: null, expiresAtMs: 0, credential: null } as const;
const cell = { role: "cell", keyId: "k", cell: "1", expiresAtMs: 0, credential: null } as const;

afterEach(() => void vi.restoreAllMocks());

test("failures of the service and changes by operators are always logged", () => {
  expect(isLogged({ principal: cell }, "PUT", 503, 0)).toBe(true);
  expect(isLogged({}, "GET", 500, 0)).toBe(true);
  expect(isLogged({ principal: operator }, "POST", 200, 0)).toBe(true);
  expect(isLogged({ principal: operator }, "POST", 409, 0)).toBe(true);
  expect(isLogged({ principal: operator }, "GET", 200, 0)).toBe(false);
  expect(isLogged({ principal: cell }, "PUT", 201, 0)).toBe(false);
  expect(isLogged({}, "GET", 401, 0)).toBe(false);
  expect(isLogged({}, "GET", 200, 1)).toBe(true);
});

test("a share of the others is logged at random", () => {
  const logged = [0, 0.009, 0.01, 0.5, 0.999].filter((drawn) => {
    vi.spyOn(Math, "random").mockReturnValue(drawn);
    return isLogged({ principal: cell }, "GET", 200, 0.01);
  });
  expect(logged).toEqual([0, 0.009]);
});
