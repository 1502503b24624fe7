import { AsyncLocalStorage } from "node:async_hooks";

/** Where a process can be told to kill itself. */
export type CrashPoint = "before_commit" | "after_commit";

/** What is being done, for whoever hears of its calls. */
export interface Action {
  what: string;
  crash?: CrashPoint | undefined;
  isReconciliation?: boolean;
  /** The lease of its local transaction, once there is one. */
  lease?: string;
}

const actions = new AsyncLocalStorage<Action>();

export const runAction = <T>(action: Action, work: () => T): T => actions.run({ ...action }, work);

export const currentAction = (): Action | undefined => actions.getStore();
