/** The API as a test of a cell gets to see it. */
import { startTestCoordinator } from "../../src/testing/index.ts";
import { conformanceSuite } from "../suites/conformance/suite.ts";

conformanceSuite("a coordinator in the process of a test", startTestCoordinator);
