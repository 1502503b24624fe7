import type { Clock } from "../../coordinator/kernel/ports.ts";

/** The clock of a host, and of all its objects. */
export interface HostClock extends Clock {
  /** As `after`, but the timer does not keep the process alive. */
  inBackground(delayMs: number, fire: () => void): () => void;
}
