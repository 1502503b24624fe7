import {
  DefaultReporter,
  type TestCase,
  type TestModule,
  type TestModuleState,
  type TestSuite,
} from "vitest/node";
import { ruleOf } from "./rules.ts";

type Entity = TestCase | TestSuite | TestModule;

interface Repeatable {
  /** Why a test that passed was repeated with longer timeouts. The same ones in each run show a defect. */
  repeated?: string[];
}

type RunEnd = Parameters<DefaultReporter["onTestRunEnd"]>;

/**
 * Prints one line per test file. At the end, it says how to run each failed test alone, and names the tests
 * that were repeated or skipped. In CI, a skipped test fails the run.
 */
export default class Reporter extends DefaultReporter {
  protected override printTestCase(moduleState: TestModuleState, test: TestCase): void {
    if (this.renderSucceed || test.result().state === "failed") super.printTestCase(moduleState, test);
  }

  override onTestRunEnd(...end: RunEnd): void {
    const [modules, unhandled] = end;
    super.onTestRunEnd(...end);
    for (const failed of modules.flatMap(failuresIn)) this.log(describeFailure(failed));
    for (const { message, VITEST_TEST_PATH: path } of unhandled) {
      const module = modules.find(({ moduleId }) => moduleId === path);
      this.log(`FAILED outside of a test: ${message}`);
      if (module !== undefined) this.log(`  again: ${commandFor(module)}`);
    }
    for (const test of modules.flatMap((module) => [...module.children.allTests()]))
      for (const reason of (test.meta() as Repeatable).repeated ?? [])
        this.log(`REPEATED ${titleOf(test)}: ${reason}`);
    // Everything that `-t` leaves out counts as skipped.
    const skipped = this.ctx.config.testNamePattern === undefined ? modules.flatMap(skippedIn) : [];
    for (const test of skipped) this.log(`SKIPPED ${titleOf(test)}`);
    if (skipped.length === 0 || !process.env["CI"]) return;
    this.log(`FAILED because tests were skipped in CI: ${skipped.length}`);
    process.exitCode = 1;
  }
}

const titleOf = ({ module, fullName }: TestCase): string => `${module.relativeModuleId} > ${fullName}`;

const skippedIn = (module: TestModule): TestCase[] => [...module.children.allTests("skipped")];

/** The failed tests of a file, and the suites and files that failed outside of their tests. */
function failuresIn(module: TestModule): Entity[] {
  const suites = [module, ...module.children.allSuites()].filter((suite) => suite.errors().length > 0);
  return [...suites, ...module.children.allTests("failed")];
}

function describeFailure(failed: Entity): string {
  const { module, name } = placeOf(failed);
  const numbers = name.match(/(?<=\[)[A-Z]\d+(?=\])/g) ?? [];
  return [
    `FAILED ${[module.relativeModuleId, name].filter(Boolean).join(" > ")}`,
    ...numbers.map((number) => `  rule:  ${number} of ${ruleOf.get(number)?.page}`),
    `  again: ${commandFor(failed)}`,
  ].join("\n");
}

const placeOf = (entity: Entity): { module: TestModule; name: string } =>
  entity.type === "module" ? { module: entity, name: "" } : { module: entity.module, name: entity.fullName };

function commandFor(failed: Entity): string {
  const { module, name } = placeOf(failed);
  const pattern = name.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
  const end = failed.type === "test" ? "$" : "";
  return [
    `TEST_SLICE=${process.env["TEST_SLICE"]} npx vitest run --project ${module.project.name}`,
    module.relativeModuleId,
    ...(name === "" ? [] : [`-t '${`^${pattern}${end}`.replaceAll("'", String.raw`'\''`)}'`]),
  ].join(" ");
}
