import type { Env } from "../../../src/coordinator/env.ts";

/** Returns an environment whose objects and D1 record each call, such as `CELL_LEDGER.begin`. */
export function counting(env: Env): { env: Env; calls: string[] } {
  const calls: string[] = [];
  const watched = Object.fromEntries(
    (["CELL_LEDGER", "CLAIM_SHARD", "DIRECTORY"] as const).map((name) => [
      name,
      watchedNamespace(name, env[name], (call) => calls.push(call)),
    ]),
  );
  const DB = new Proxy(env.DB, {
    get: (database, method) => {
      calls.push(`DB.${String(method)}`);
      const value: unknown = Reflect.get(database, method);
      return typeof value === "function" ? value.bind(database) : value;
    },
  });
  return { env: { ...env, ...watched, DB }, calls };
}

type AnyNamespace = Env["CELL_LEDGER"] | Env["CLAIM_SHARD"] | Env["DIRECTORY"];

type AnyStub = Record<string | symbol, (...given: unknown[]) => unknown>;

/**
 * Calls `before` with `NAMESPACE.method` ahead of each call. `before` may throw, or return a promise that
 * replaces the object's answer.
 */
export function watchedNamespace(
  name: string,
  namespace: AnyNamespace,
  before: (call: string, object: string) => unknown,
): unknown {
  return {
    getByName: (object: string, options: DurableObjectNamespaceGetDurableObjectOptions) =>
      new Proxy(namespace.getByName(object, options) as unknown as AnyStub, {
        get: (stub, method) => {
          if (typeof method === "symbol") return undefined;
          return (...given: unknown[]) => {
            const instead = before(`${name}.${method}`, object);
            return instead instanceof Promise ? instead : stub[method]?.(...given);
          };
        },
      }),
  };
}
