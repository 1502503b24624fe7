/**
 * The environment of a Worker or an object, in which every call to an object and every D1 statement goes
 * through a TestDeployment.
 */
import type { Env, Namespace } from "../../../src/coordinator/env.ts";
import type { Exchange } from "../../../src/coordinator/kernel/messages.ts";
import { faultyD1 } from "./faulty-d1.ts";
import type { TestDeployment } from "./test-deployment.ts";

type Callable = Record<string, (message: unknown) => Promise<unknown>>;

/** `from`: the caller's label. `isAlive` throws, or never returns, if that instance has died. */
export function faultyEnv(
  env: Env,
  deployment: TestDeployment,
  from: string,
  isAlive: () => void = () => {},
): Env {
  const wrapped = (real: Namespace<object>): unknown => faultyNamespace(real, deployment, from, isAlive);
  const databases = env as unknown as Record<string, D1Database | undefined>;
  const database = databases[deployment.database];
  if (database === undefined) throw new Error(`there is no binding ${deployment.database}`);
  return {
    ...env,
    ...deployment.variables,
    CELL_LEDGER: wrapped(env.CELL_LEDGER) as Env["CELL_LEDGER"],
    CLAIM_SHARD: wrapped(env.CLAIM_SHARD) as Env["CLAIM_SHARD"],
    DIRECTORY: wrapped(env.DIRECTORY) as Env["DIRECTORY"],
    DB: faultyD1(database, deployment, from, isAlive),
  };
}

function faultyNamespace(
  real: Namespace<object>,
  deployment: TestDeployment,
  from: string,
  isAlive: () => void,
): Namespace<object> {
  const getByName: Namespace<object>["getByName"] = (name, options) => {
    const physical = deployment.physical(name);
    const stub = (): Callable => real.getByName(physical, options) as unknown as Callable;
    return faultyStub(stub, deployment, from, labelOf(name), isAlive);
  };
  return { getByName };
}

/**
 * A stub whose methods send through the deployment. Each delivery gets a new real stub, because a stub that
 * met a reset fails for ever.
 */
function faultyStub(
  stub: () => Callable,
  deployment: TestDeployment,
  from: string,
  to: string,
  isAlive: () => void,
): object {
  return new Proxy(
    {},
    {
      get: (_, method) => {
        if (typeof method !== "string" || method === "then") return undefined;
        return (given: unknown) => {
          isAlive();
          const deliver = async (): Promise<unknown> => stub()[method]?.(given);
          return deployment.send({
            from,
            to,
            method: method === "exchange" ? `exchange ${kindOf(given as Exchange)}` : method,
            deliver,
          });
        };
      },
    },
  );
}

const labelOf = (name: string): string => {
  const [prefix, number] = name.split("-");
  if (prefix === "cell") return `ledger${Number(number) % 10}`;
  return prefix === "shard" ? `shard${number}` : name;
};

function kindOf({ decisions, prepares }: Exchange): string {
  const kinds = [
    ...new Set(
      decisions.map(({ outcome, epoch }) =>
        epoch === null ? "release" : outcome === "COMMITTED" ? "commit" : "rollback",
      ),
    ),
  ];
  return [...kinds, ...(prepares.length > 0 ? ["prepare"] : [])].join("+");
}
