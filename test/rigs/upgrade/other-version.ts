/**
 * Stands for src/coordinator/index.ts of the next version, which the bundle of worker.ts gets in its place.
 */
export { CellLedger, ClaimShard, default, Directory } from "../../../src/coordinator/index.ts";
