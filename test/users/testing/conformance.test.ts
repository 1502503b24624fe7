/** What can differ by host, through `leasehold/testing`. */
import { startTestCoordinator } from "../../../src/users/testing/index.ts";
import { hostSuite } from "../../suites/conformance/suite.ts";

hostSuite("a coordinator in the process of a test", startTestCoordinator);
