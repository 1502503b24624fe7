/** The test runners that run the conformance suite, as docs/guides/write-an-adapter.md shows them. */
import type { CellRuntime } from "./runtimes.ts";

export interface Runner {
  name: string;
  /** The npm packages that it needs, with their versions. */
  packages: Readonly<Record<string, string>>;
  /** The lines of a test file that make `runner`. The guide has the same lines. */
  lines: string;
  /** The options of the runtime that run the test file. */
  args: (file: string) => readonly string[];
  runsOn: (runtime: CellRuntime) => boolean;
}

const isNode = ({ name }: CellRuntime): boolean => name === "Node";
/** The Node that the project itself uses. Jest and Vitest run on one is enough. */
const isProjectsNode = (runtime: CellRuntime): boolean =>
  isNode(runtime) && runtime.version.startsWith("24.");

export const runners: readonly Runner[] = [
  {
    name: "node:test",
    packages: { expect: "30.5.2" },
    lines: `import { after, before, beforeEach, describe, test } from "node:test";
import { expect } from "expect";

const runner = { describe, test, expect, beforeAll: before, beforeEach, afterAll: after };
`,
    args: (file) => ["--test", "--test-reporter=spec", file],
    runsOn: (runtime) => isNode(runtime) && runtime.hasTesting,
  },
  {
    name: "Jest",
    packages: { jest: "30.5.2", "@jest/globals": "30.5.2" },
    lines: `import * as runner from "@jest/globals";
`,
    args: (file) => [
      "--experimental-vm-modules",
      "node_modules/jest/bin/jest.js",
      "--testMatch",
      `**/${file}`,
    ],
    runsOn: isProjectsNode,
  },
  {
    name: "Vitest",
    packages: { vitest: "5.1" },
    lines: `import * as runner from "vitest";
`,
    args: (file) => ["node_modules/vitest/vitest.mjs", "run", file],
    runsOn: isProjectsNode,
  },
  {
    name: "bun test",
    packages: {},
    lines: `import * as runner from "bun:test";
`,
    args: (file) => ["test", `./${file}`],
    runsOn: ({ name }) => name === "Bun",
  },
];
