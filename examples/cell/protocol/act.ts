import { AsyncLocalStorage } from "node:async_hooks";

/** Where a process can be told to kill itself. */
export type CrashPoint = "before_commit" | "after_commit";

/** What is being done, for whoever hears of its calls. */
export interface Act {
  what: string;
  crash?: CrashPoint | undefined;
  isReconciliation?: boolean;
  /** The lease of its local transaction, once there is one. */
  lease?: string;
}

const acts = new AsyncLocalStorage<Act>();

export const acting = <T>(act: Act, work: () => T): T => acts.run({ ...act }, work);

export const currentAct = (): Act | undefined => acts.getStore();
