/** The conformance suite of the API, through `leasehold/testing`. */
import { startTestCoordinator } from "../../src/testing/index.ts";
import { conformanceSuite } from "../suites/conformance/suite.ts";

conformanceSuite("a coordinator in the process of a test", startTestCoordinator);
