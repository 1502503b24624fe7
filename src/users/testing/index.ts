/**
 * A coordinator for tests of cells: the real one, in this process, over databases in memory. Needs Node
 * 22.13.
 */
export { startTestCoordinator } from "./coordinator.ts";
export type { TestCoordinator, TestCoordinatorOptions, TestFetch, TestKeys } from "./types.ts";
export type { CallFilter, Fault, Faults, ObservedCall } from "./faults.ts";
export type { Operation } from "./operations.ts";
