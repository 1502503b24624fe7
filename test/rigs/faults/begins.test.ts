/** Every durable write of a begin, with every fault. See docs/internals/fault-matrix.md. */
import { scenarios } from "./scenarios.ts";
import { matrixSuite } from "./suite.ts";

await matrixSuite(scenarios.filter(({ isBegin }) => isBegin === true));
