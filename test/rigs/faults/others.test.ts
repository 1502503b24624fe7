/** Every other durable write × everything that can go wrong there: docs/internals/fault-matrix.md. */
import { scenarios } from "./scenarios.ts";
import { matrixSuite } from "./suite.ts";

await matrixSuite(scenarios.filter(({ isBegin }) => isBegin !== true));
