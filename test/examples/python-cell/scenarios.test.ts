/** The life of a claim and collisions with the Python cell, over the coordinator for tests. */
import { describe } from "vitest";
import { testCoordinator } from "../../users/cell/scenarios/starts.ts";
import { isSkipped } from "../../support/databases/available.ts";
import { findPython } from "../../support/python.ts";
import { useBoxes, withPython } from "./boxed-cells.ts";
import { blackBoxSuite, collisionSuite, lifeSuite } from "./suite.ts";

describe.skipIf(isSkipped("PostgreSQL") || findPython() === undefined)("a cell from outside", () => {
  const worldOf = useBoxes(testCoordinator);
  blackBoxSuite("the Python cell", worldOf(withPython), [lifeSuite, collisionSuite]);
});
