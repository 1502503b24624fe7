/** The part of a test runner that the suites use. Vitest, Jest and Bun have it. */

type Check = (...expected: never[]) => unknown;

/** The checks that the suites use. All of them throw, or reject after `rejects` and `resolves`. */
interface Matchers {
  toBe: Check;
  toEqual: Check;
  toMatch: Check;
  toMatchObject: Check;
  toContain: Check;
  toHaveLength: Check;
  toHaveProperty: Check;
  toBeInstanceOf: Check;
  toBeUndefined: Check;
  toThrow: Check;
}

interface Checks {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatch(expected: RegExp): void;
  toMatchObject(expected: object): void;
  toContain(expected: unknown): void;
  toHaveLength(length: number): void;
  toHaveProperty(name: string): void;
  toBeInstanceOf(expected: unknown): void;
  toBeUndefined(): void;
  toThrow(expected?: unknown): void;
}

type AsyncChecks = { [Name in keyof Checks]: (...expected: Parameters<Checks[Name]>) => Promise<void> };

/** The functions of a test runner, such as Vitest's. Pass its module, or an object with its globals. */
export interface TestRunner {
  describe: (name: string, body: () => void) => unknown;
  test: (name: string, body: () => Promise<void>, timeoutMs: number) => unknown;
  beforeAll: (body: () => Promise<void>, timeoutMs: number) => unknown;
  beforeEach: (body: () => Promise<void>, timeoutMs: number) => unknown;
  afterAll: (body: () => Promise<void>, timeoutMs: number) => unknown;
  expect: ((
    actual: unknown,
  ) => Matchers & { not: Matchers; rejects: Matchers & { not: Matchers }; resolves: Matchers }) & {
    any(constructor: unknown): unknown;
  };
}

interface Expected extends Checks {
  not: Checks;
  rejects: AsyncChecks & { not: AsyncChecks };
  resolves: AsyncChecks;
}

/** A test runner as the suites see it. */
export interface Suites {
  describe: (name: string, body: () => void) => void;
  test: (name: string, body: () => Promise<void>) => void;
  beforeAll: (body: () => Promise<void>) => void;
  beforeEach: (body: () => Promise<void>) => void;
  afterAll: (body: () => Promise<void>) => void;
  expect: ((actual: unknown) => Expected) & { any(constructor: unknown): unknown };
}

/** The suite has thousands of statements, and no test depends on the speed of the machine. */
const TIMEOUT_MS = 120_000;

export function suitesOf(runner: TestRunner): Suites {
  const { describe, test, beforeAll, beforeEach, afterAll, expect } = runner;
  return {
    describe: (name, body) => void describe(name, body),
    test: (name, body) => void test(name, body, TIMEOUT_MS),
    beforeAll: (body) => void beforeAll(body, TIMEOUT_MS),
    beforeEach: (body) => void beforeEach(body, TIMEOUT_MS),
    afterAll: (body) => void afterAll(body, TIMEOUT_MS),
    expect: expect as unknown as Suites["expect"],
  };
}
