/**
 * A coordinator for tests of cells: the real one, in this process, over databases in memory. Needs Node
 * 22.13.
 */
export {
  startTestCoordinator,
  type TestCoordinator,
  type TestCoordinatorOptions,
  type TestFetch,
  type TestKeys,
} from "./coordinator.ts";
export type { CallFilter, Fault, Faults, ObservedCall, Operation } from "./faults.ts";
