import { Session, type Runtime } from "node:inspector";

/**
 * Returns the private fields of an object, so that a test can see how much it keeps in memory. The debugger's
 * protocol is the only way to read a `#field` from outside, and keeps the sources free of code for tests.
 */
function privateFields(owner: object): Map<string, unknown> {
  const session = new Session();
  session.connect();
  const shared = globalThis as { passed?: unknown };
  // Calls from the same thread are answered before `post` returns.
  const post = (method: string, params: object): object => {
    let answer: object | undefined;
    session.post(method, params, (error: Error | null, result?: object) => {
      if (error !== null) throw new Error(`${method} failed: ${JSON.stringify(error)}`);
      answer = result;
    });
    if (answer === undefined) throw new Error(`${method} was not answered at once`);
    return answer;
  };
  try {
    shared.passed = owner;
    const { result } = post("Runtime.evaluate", {
      expression: "globalThis.passed",
    }) as Runtime.EvaluateReturnType;
    const { privateProperties = [] } = post("Runtime.getProperties", {
      objectId: result.objectId,
      ownProperties: true,
    }) as { privateProperties?: Runtime.PropertyDescriptor[] };
    return new Map(
      privateProperties.map(({ name, value }) => {
        if (value?.objectId === undefined) return [name, value?.value];
        post("Runtime.callFunctionOn", {
          objectId: value.objectId,
          functionDeclaration: "function () { globalThis.passed = this; }",
        });
        return [name, shared.passed];
      }),
    );
  } finally {
    delete shared.passed;
    session.disconnect();
  }
}

export function privateField(owner: object, name: string): unknown {
  const fields = privateFields(owner);
  if (!fields.has(name)) throw new Error(`${owner.constructor.name} has no field ${name}`);
  return fields.get(name);
}

/** Follows a path of fields: `#part.deliveries.#open`. */
export const privatePath = (owner: object, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (each, name) =>
        name.startsWith("#") ? privateField(each as object, name) : (each as Record<string, unknown>)[name],
      owner,
    );

/**
 * Returns the size of everything that can be reached from these objects through their fields, by class and
 * field: `Begins.#running`. A promise or another object counts as 1, and what is not there counts as 0.
 * `collections` names the fields with a Map, Set or array.
 */
export function sizesIn(roots: readonly unknown[]): {
  sizes: Map<string, number[]>;
  collections: Set<string>;
} {
  const sizes = new Map<string, number[]>();
  const collections = new Set<string>();
  const seen = new Set<object>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    if (value instanceof Map || value instanceof Set || Array.isArray(value)) {
      for (const each of value.values()) visit(each);
      return;
    }
    const name = value.constructor?.name ?? "Object";
    if (BUILT_IN.has(name)) return;
    const fields = [...(name === "Object" ? [] : privateFields(value)), ...Object.entries(value)];
    for (const [field, content] of fields) {
      const key = `${name}.${field}`;
      if (name !== "Object") sizes.set(key, [...(sizes.get(key) ?? []), sizeOf(content)]);
      if (content instanceof Map || content instanceof Set || Array.isArray(content)) collections.add(key);
      visit(content);
    }
  };
  for (const root of roots) visit(root);
  return { sizes, collections };
}

/** Objects of the platform, which have no fields of ours. */
const BUILT_IN = new Set(["Promise", "WeakMap", "DatabaseSync", "StatementSync", "Date", "CryptoKey"]);

function sizeOf(value: unknown): number {
  if (value === undefined || value === null) return 0;
  if (value instanceof Map || value instanceof Set) return value.size;
  if (Array.isArray(value)) return value.length;
  const { length } = value as { length?: unknown };
  return typeof length === "number" ? length : 1;
}
