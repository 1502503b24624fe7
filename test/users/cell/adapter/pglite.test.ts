/** The whole conformance suite on PGlite. */
import * as vitest from "vitest";
import { cellConformance } from "../../../../src/users/cell/conformance/index.ts";
import { pgliteTarget, testCoordinator } from "../scenarios/starts.ts";

cellConformance(vitest, { ...pgliteTarget, coordinator: testCoordinator });
