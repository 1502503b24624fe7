/** The runtimes that the SDK supports, as docs/reference/databases.md states them. */

export interface Runtime {
  /** As in the docs. */
  name: string;
  version: string;
  /** The npm package that contains it, and the path of the program in there. */
  package: string;
  program: string;
  /** Kysely 0.29 needs Node 22. */
  kysely: string;
  /** Whether it runs `leasehold/testing`, which needs `node:sqlite`, and so the conformance suite. */
  hasTesting: boolean;
}

const KYSELY_FOR_NODE_20 = "0.28.18";
const LATEST_KYSELY = "0.29";

const isArm = process.arch === "arm64";

function node(version: string): Runtime {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return {
    name: "Node",
    version,
    package: `node-linux-${process.arch}`,
    program: "bin/node",
    kysely: major < 22 ? KYSELY_FOR_NODE_20 : LATEST_KYSELY,
    hasTesting: major > 22 || (major === 22 && minor >= 13),
  };
}

const bun = (version: string): Runtime => ({
  name: "Bun",
  version,
  package: `@oven/bun-linux-${isArm ? "aarch64" : "x64"}`,
  program: "bin/bun",
  kysely: LATEST_KYSELY,
  hasTesting: true,
});

/** The oldest Node of `engines`, the oldest with `leasehold/testing`, and the newest of each release line. */
export const runtimes: readonly Runtime[] = [
  node("20.19.0"),
  node("20.20.2"),
  node("22.13.1"),
  node("22.23.3"),
  node("24.21.0"),
  node("26.10.0"),
  bun("1.4.5"),
];

export const titleOf = ({ name, version }: Runtime): string => `${name} ${version}`;
