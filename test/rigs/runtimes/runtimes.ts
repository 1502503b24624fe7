/** The runtimes that the SDK supports, as docs/reference/databases.md and router.md state them. */
import manifest from "../../../package.json" with { type: "json" };

/** A runtime that is in an npm package. */
export interface Runtime {
  /** As in the docs. */
  name: string;
  version: string;
  /** The npm package that contains it, and the path of the program in there. */
  package: string;
  program: string;
  /** The options that run a module. */
  args: (module: string) => readonly string[];
}

/** A runtime for cells, with their drivers. */
export interface CellRuntime extends Runtime {
  /** Kysely 0.29 needs Node 22. */
  kysely: string;
  /** Whether it runs `leasehold/testing`, which needs `node:sqlite`, and so the conformance suite. */
  hasTesting: boolean;
}

const KYSELY_FOR_NODE_20 = "0.28.18";
export const LATEST_KYSELY = "0.29";

const isArm = process.arch === "arm64";

function node(version: string): CellRuntime {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return {
    name: "Node",
    version,
    package: `node-linux-${process.arch}`,
    program: "bin/node",
    args: (module) => [module],
    kysely: major < 22 ? KYSELY_FOR_NODE_20 : LATEST_KYSELY,
    hasTesting: major > 22 || (major === 22 && minor >= 13),
  };
}

const bun = (version: string): CellRuntime => ({
  name: "Bun",
  version,
  package: `@oven/bun-linux-${isArm ? "aarch64" : "x64"}`,
  program: "bin/bun",
  args: (module) => [module],
  kysely: LATEST_KYSELY,
  hasTesting: true,
});

/** The oldest Node of `engines`, the oldest with `leasehold/testing`, and the newest of each release line. */
export const runtimes: readonly CellRuntime[] = [
  node("20.19.0"),
  node("20.20.2"),
  node("22.13.1"),
  node("22.23.3"),
  node("24.21.0"),
  node("26.10.0"),
  bun("1.4.5"),
];

/** These run only the router. */
export const deno: Runtime = {
  name: "Deno",
  version: "2.9.6",
  package: `@deno/linux-${isArm ? "arm64" : "x64"}-glibc`,
  program: "deno",
  args: (module) => ["run", "--allow-all", "--node-modules-dir=manual", module],
};

/** The runtime of Workers, as the repository has it. */
export const workerd = { name: "workerd", version: manifest.devDependencies.workerd };

export const titleOf = ({ name, version }: Pick<Runtime, "name" | "version">): string => `${name} ${version}`;
