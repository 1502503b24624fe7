/** All scenarios, with the Python cell and with the SDK, over workerd. scenarios.test.ts has the first. */
import { describe } from "vitest";
import { realCoordinator } from "../../users/cell/scenarios/starts.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { findPython } from "../../support/python.ts";
import { useBoxes, withPython, withSdk } from "./boxed-cells.ts";
import { blackBoxSuite } from "./suite.ts";

describe.skipIf(isSkipped("PostgreSQL") || findPython() === undefined)("a cell from outside", () => {
  const worldOf = useBoxes(realCoordinator);
  blackBoxSuite("the Python cell", worldOf(withPython));
  blackBoxSuite("the SDK", worldOf(withSdk));
});
