/** A part of the deep suite: one command, which ends with 0 when it found nothing. */
export interface Step {
  name: string;
  description: string;
  command: readonly [string, ...string[]];
  env?: Readonly<Record<string, string>>;
}

const sim = "test/rigs/sim/main.ts";

/** In order: what usually finds something comes first. */
export const steps: readonly Step[] = [
  {
    name: "sim-seeds",
    description: "the first 1,000 seeds of the simulator, which must meet everything",
    command: ["node", sim, "--from", "1", "--seeds", "1000", "--coverage"],
  },
  {
    name: "sim-bugs",
    description: "every planted bug over all of its seeds",
    command: ["node", sim, "--bugs", "--seeds", "200"],
  },
  {
    name: "sim-unseen",
    description: "seeds of the simulator that nobody has run, for an hour",
    command: ["node", sim, "--minutes", "60"],
  },
  {
    name: "fault-pairs",
    description: "the whole fault matrix, every pair of writes included",
    command: ["vitest", "run", "--project", "faults"],
    env: { FAULT_PAIRS: "all" },
  },
  {
    name: "fuzz",
    description: "3,000 runs of each fuzzed property, with a new seed",
    command: ["npm", "run", "fuzz"],
    env: { FUZZ_RUNS: "3000" },
  },
  { name: "model", description: "the whole model", command: ["node", "test/rigs/model/main.ts", "--full"] },
  {
    name: "crash",
    description: "every failpoint of the server, and 30 random rounds",
    command: ["node", "test/rigs/crash/main.ts"],
  },
  {
    name: "cell-crash",
    description: "two cells under load, with kills on all sides",
    command: ["node", "test/rigs/cell-crash/main.ts"],
  },
  {
    name: "soak",
    description: "30 minutes of mixed load with kills and restarts",
    command: ["node", "test/rigs/soak/main.ts", "--minutes", "30"],
  },
  { name: "mutation", description: "mutation tests of the core", command: ["stryker", "run"] },
];
