import type { Received } from "./api.ts";

/** What an implementation does that a rule forbids. The message is shown in the report. */
export class Nonconformity extends Error {
  override readonly name = "Nonconformity";
}

/** The longest part of an answer that a message shows. */
const SHOWN = 300;

export const describe = ({ method, path, status, text }: Received): string =>
  `${method} ${path} answered ${status}${text === "" ? "" : ` ${cut(text.trim())}`}`;

const cut = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

const shown = (value: unknown, absent: string): string => cut(JSON.stringify(value) ?? absent);

/** @param problem what is wrong, as a sentence without a full stop */
export function expectThat(isTrue: boolean, problem: string): asserts isTrue {
  if (!isTrue) throw new Nonconformity(problem);
}

export function expectStatus(received: Received, ...statuses: readonly number[]): void {
  expectThat(statuses.includes(received.status), `${describe(received)}; expected ${statuses.join(" or ")}`);
}

/** Compares only the fields that `expected` has. Lists must have the same length. */
export function expectFields(received: Received, expected: object): void {
  const difference = differenceOf(received.json, expected, "");
  if (difference !== undefined) throw new Nonconformity(`${describe(received)}; ${difference}`);
}

export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  const difference = differenceOf(actual, expected, what);
  if (difference !== undefined) throw new Nonconformity(difference);
}

function differenceOf(actual: unknown, expected: unknown, path: string): string | undefined {
  if (typeof expected !== "object" || expected === null)
    return Object.is(actual, expected)
      ? undefined
      : `${path} is ${shown(actual, "absent")}; expected ${shown(expected, "none")}`;
  if (typeof actual !== "object" || actual === null)
    return `${path === "" ? "the body" : path} is ${shown(actual, "absent")}`;
  if (Array.isArray(expected)) {
    const length = Array.isArray(actual) ? actual.length : undefined;
    if (length !== expected.length) return `${path} has ${length ?? "no"} items; expected ${expected.length}`;
  }
  for (const [name, value] of Object.entries(expected)) {
    const below = Array.isArray(expected) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const difference = differenceOf((actual as Record<string, unknown>)[name], value, below);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

/** A refusal with its code and, if there is one, its reason or field. */
export function expectRefusal(
  received: Received,
  status: number,
  expected: { code: string; reason?: string; field?: string; conflicts?: readonly object[] },
): void {
  expectStatus(received, status);
  expectFields(received, expected);
  const type = received.header("content-type");
  expectThat(
    type?.startsWith("application/problem+json") === true,
    `${describe(received)}; a refusal must be application/problem+json, and is ${type ?? "of no type"}`,
  );
}
