import type { TestRunner } from "../../src/cell/conformance/index.ts";
import { inSlice } from "./slice.ts";

/**
 * A test runner that declares only the tests of the slice, of each `describe` every `parts`th one. It is for
 * adapters that share most of their code with one whose suite always runs in full.
 */
export function partOfSuite(runner: TestRunner, parts: number): TestRunner {
  type Declared = Parameters<TestRunner["test"]>;
  let declared: Declared[] | undefined;
  return {
    ...runner,
    test: (...test) => (declared === undefined ? runner.test(...test) : declared.push(test)),
    describe: (name, body) =>
      runner.describe(name, () => {
        const outer = declared;
        const own: Declared[] = (declared = []);
        body();
        declared = outer;
        for (const test of inSlice(own, parts)) runner.test(...test);
      }),
  };
}
