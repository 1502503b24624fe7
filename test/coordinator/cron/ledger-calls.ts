import type { Envelope, LeaseState, Maintain } from "../../../src/coordinator/kernel/messages.ts";
import type { Pull } from "../../../src/coordinator/capabilities/projection/messages.ts";
import type { ScrubStep } from "../../../src/coordinator/capabilities/scrub/messages.ts";
import type { LedgerCalls } from "../../../src/coordinator/kernel/methods.ts";
import type { Env } from "../../../src/coordinator/env.ts";
import { env } from "./fleet.ts";

/** An environment in which `stand` replaces the stub of each ledger. It gets the cell and the real stub. */
function withLedgers(base: Env, stand: (cell: string, real: LedgerCalls) => object): Env {
  const getByName = (name: string) => stand(name.slice("cell-".length), env.CELL_LEDGER.getByName(name));
  return { ...base, CELL_LEDGER: { getByName } as unknown as Env["CELL_LEDGER"] };
}

/**
 * An environment in which one cell's ledger fails. Its calls fail at once (`fails`), are never answered
 * (`hangs`), or its stub cannot be made (`throws`). `onCall` is called when a call arrives.
 */
export function withoutLedger(
  cell: string,
  how: "fails" | "hangs" | "throws" = "fails",
  onCall: () => void = () => {},
): Env {
  const fail = (): Promise<never> => {
    onCall();
    return how === "hangs" ? new Promise(() => {}) : Promise.reject(new Error("the object was reset"));
  };
  return withLedgers(env, (asked, real) => {
    if (asked !== cell) return real;
    if (how === "throws") throw new TypeError("no such location");
    return { pull: fail, maintain: fail, leaseStates: fail, scrub: fail };
  });
}

/** Records which ledgers are woken. */
export function recordingMaintain(base: Env = env): { env: Env; woken: Set<string> } {
  const woken = new Set<string>();
  const recording = withLedgers(base, (cell, real) => ({
    pull: (message: Pull) => real.pull(message),
    maintain: (message: Maintain) => {
      woken.add(cell);
      return real.maintain(message);
    },
    scrub: (message: ScrubStep) => real.scrub(message),
  }));
  return { env: recording, woken };
}

/** All calls of ledgers arrive after a pause, and their answers after another. */
export function withSlowLedgers(pause: () => Promise<unknown>, base: Env = env): Env {
  const slowly = async <T>(work: () => Promise<T>): Promise<T> => {
    await pause();
    const answer = await work();
    await pause();
    return answer;
  };
  return withLedgers(base, (_, real) => ({
    pull: (message: Pull) => slowly(async () => real.pull(message)),
    maintain: (message: Maintain) => slowly(async () => real.maintain(message)),
    scrub: (message: ScrubStep) => slowly(async () => real.scrub(message)),
  }));
}

/** Records which ledgers are asked for states. `answer` may answer instead of a ledger. */
export function countingLedgers(
  answer: (cell: string, leases: string[]) => LeaseState[] | undefined = () => undefined,
): {
  env: Env;
  asked: string[];
} {
  const asked: string[] = [];
  const counting = withLedgers(env, (cell, real) => ({
    leaseStates: async (message: Envelope & { leases: string[] }) => {
      asked.push(cell);
      const states = answer(cell, message.leases);
      return states === undefined
        ? real.leaseStates(message)
        : { ok: true, value: states.map((state) => ({ state, createdAtMs: 0 })) };
    },
  }));
  return { env: counting, asked };
}
