/** Direct access of tests to the objects of a deployment, past the wrapper. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "../../support/workerd/api.ts";
import { LostAlarm, type TestDeployment } from "./test-deployment.ts";

interface Ringable {
  alarm(): Promise<void>;
}

export function stubOf(deployment: TestDeployment, label: string): DurableObjectStub {
  const number = Number(label.at(-1));
  const bindings = env as unknown as Record<string, DurableObjectNamespace>;
  const [binding, name] =
    label === "directory"
      ? ["DIRECTORY", "directory"]
      : label.startsWith("ledger")
        ? ["CELL_LEDGER", `cell-${deployment.cell(number as 1 | 2)}`]
        : ["CLAIM_SHARD", `shard-${number}`];
  const namespace = bindings[binding];
  if (namespace === undefined) throw new Error(`there is no binding ${binding}`);
  return namespace.getByName(deployment.physical(name));
}

/** Reads rows of an object. Retries if its instance has just died. */
export async function rowsOf<Row>(
  deployment: TestDeployment,
  label: string,
  statement: string,
): Promise<Row[]> {
  for (let tries = 3; ; tries -= 1) {
    try {
      return await runInDurableObject(
        stubOf(deployment, label),
        (_, state) => state.storage.sql.exec(statement).toArray() as Row[],
      );
    } catch (error) {
      if (tries === 0) throw error;
    }
  }
}

/** Rings an object's alarm as the platform does, with retries. Returns false if no alarm was set. */
export async function ring(deployment: TestDeployment, label: string): Promise<boolean> {
  let isRinging = false;
  const deliver = (): Promise<unknown> =>
    runInDurableObject(stubOf(deployment, label), async (instance, state) => {
      if ((await state.storage.getAlarm()) === null && !isRinging) return;
      isRinging = true;
      await state.storage.deleteAlarm();
      await (instance as unknown as Ringable).alarm();
    });
  for (let tries = 3; tries > 0; tries -= 1) {
    try {
      await deployment.send({ from: "platform", to: label, method: "alarm", deliver });
      return isRinging;
    } catch (error) {
      // The platform retries an alarm that failed.
      if (!(error instanceof LostAlarm)) continue;
      await runInDurableObject(stubOf(deployment, label), (_, state) => state.storage.deleteAlarm());
      return false;
    }
  }
  return isRinging;
}
