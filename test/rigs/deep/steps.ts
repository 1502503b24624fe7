/** A step of the deep suite: a command that exits with 0 if it finds nothing. */
export interface Step {
  name: string;
  description: string;
  command: readonly [string, ...string[]];
  env?: Readonly<Record<string, string>>;
}

const sim = "test/rigs/sim/main.ts";

/** The steps in order: those that usually find something come first. */
export const steps: readonly Step[] = [
  {
    name: "sim-seeds",
    description: "the first 1,000 seeds of the simulator, which must cover everything",
    command: ["node", sim, "--from", "1", "--seeds", "1000", "--coverage"],
  },
  {
    name: "sim-bugs",
    description: "every planted bug, over up to 800 seeds",
    command: ["node", sim, "--bugs", "--seeds", "800"],
  },
  {
    name: "sim-unseen",
    description: "new seeds of the simulator, for an hour",
    command: ["node", sim, "--minutes", "60"],
  },
  {
    name: "fault-rows",
    description: "the whole fault matrix, including every pair of writes",
    command: ["vitest", "run", "--project", "faults"],
    env: { TEST_SLICE: "all" },
  },
  {
    name: "capabilities",
    description: "the kernel without each capability",
    command: ["npm", "run", "check:capabilities"],
  },
  {
    name: "every-case",
    description: "the other tests with all of their cases",
    command: ["vitest", "run", ...["unit", "workerd", "sim", "system"].flatMap((one) => ["--project", one])],
    env: { TEST_SLICE: "all" },
  },
  {
    name: "fuzz",
    description: "3,000 runs of each fuzzed property, with a new seed",
    command: ["npm", "run", "fuzz"],
    env: { FUZZ_RUNS: "3000" },
  },
  {
    name: "fuzz-standalone",
    description: "the same requests to the standalone server, 1,000 runs of each property",
    command: ["npm", "run", "fuzz"],
    env: { FUZZ_RUNS: "1000", FUZZ_HOST: "standalone" },
  },
  { name: "model", description: "the whole model", command: ["node", "test/rigs/model/main.ts", "--full"] },
  {
    name: "crash",
    description: "every failpoint of the server, and 30 random rounds",
    command: ["node", "test/rigs/crash/main.ts"],
  },
  {
    name: "crash-standalone",
    description: "the same, of the standalone server",
    command: ["node", "test/rigs/crash/main.ts", "--host", "standalone"],
  },
  {
    name: "cell-crash",
    description: "two cells under load while everything is killed",
    command: ["node", "test/rigs/cell-crash/main.ts"],
  },
  {
    name: "soak",
    description: "30 minutes of mixed load with kills and restarts",
    command: ["node", "test/rigs/soak/main.ts", "--minutes", "30"],
  },
  {
    name: "upgrade",
    description: "an upgrade to a made-up next version under load, the way back, and the finish",
    command: ["node", "test/rigs/upgrade/main.ts"],
  },
  {
    name: "upgrade-kills",
    description: "the same, with kills every 5 seconds",
    command: ["node", "test/rigs/upgrade/main.ts", "--host", "mixed", "--kill-every", "5", "--rate", "50"],
  },
  {
    name: "stale-reads",
    description: "reads right after 6,400 leases, of both servers",
    command: ["node", "test/rigs/stale-reads/main.ts"],
  },
  {
    name: "routing",
    description: "a router with 500 requests per second: 20 outages, and 5 minutes of moving names",
    command: ["node", "test/rigs/routing/main.ts"],
  },
  {
    name: "runtimes",
    description: "the packed SDK and command line on every supported version of Node, Bun, Deno and workerd",
    command: ["node", "test/rigs/runtimes/main.ts"],
  },
  { name: "mutation", description: "mutation tests of the core", command: ["stryker", "run"] },
  {
    name: "mutation-cell",
    description: "mutation tests of the SDK for cells",
    command: ["stryker", "run"],
    env: { MUTATE: "cell" },
  },
];
