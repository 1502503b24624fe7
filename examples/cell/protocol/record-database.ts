import type { CellDatabase } from "leasehold/cell";
import { currentAction, type CrashPoint } from "./action.ts";
import type { Recorder } from "./recorder.ts";

/**
 * Records local transactions, and kills the process before or after their COMMIT if the action asks for it.
 */
export function recordDatabase<Tx>(database: CellDatabase<Tx>, recorder: Recorder): void {
  const insertLease = database.insertLease.bind(database);
  database.insertLease = (tx, lease) => {
    const action = currentAction();
    if (action !== undefined) action.lease = lease.uuid;
    return insertLease(tx, lease);
  };

  const run = database.run.bind(database);
  database.run = async (body) => {
    const ran = await run(async (tx) => {
      const value = await body(tx);
      crashIfRequested("before_commit", recorder);
      return value;
    });
    const uuid = currentAction()?.lease;
    if (uuid !== undefined && ran.kind !== "unknown")
      recorder.add({ kind: ran.kind === "committed" ? "saved" : "undone", uuid });
    if (ran.kind === "committed") crashIfRequested("after_commit", recorder);
    return ran;
  };

  const fence = database.fence.bind(database);
  database.fence = async (uuid) => {
    const found = await fence(uuid);
    recorder.add({ kind: "fence", uuid, found });
    return found;
  };
}

/** Kills the process without any cleanup, as a power failure would. */
function crashIfRequested(point: CrashPoint, recorder: Recorder): void {
  const action = currentAction();
  if (action?.crash !== point || action.lease === undefined) return;
  recorder.add({ kind: "killed", uuid: action.lease, at: point });
  process.kill(process.pid, "SIGKILL");
}
