import { AsyncLocalStorage } from "node:async_hooks";

/** The points where a process can kill itself. */
export type CrashPoint = "before_commit" | "after_commit";

/** The current action. The recorders read it to label the calls that it makes. */
export interface Action {
  what: string;
  crash?: CrashPoint | undefined;
  isReconciliation?: boolean;
  /** The UUID of the action's lease, once its local transaction has saved it. */
  lease?: string;
}

const actions = new AsyncLocalStorage<Action>();

export const runAction = <T>(action: Action, work: () => T): T => actions.run({ ...action }, work);

export const currentAction = (): Action | undefined => actions.getStore();
