/** Loads the script of the simulator (`bundle.ts`), which has all planted bugs. */
import { createRequire } from "node:module";
import { compileFunction } from "node:vm";
import type * as runs from "./run.ts";
import type * as shrinking from "./shrink.ts";

export type Simulator = typeof runs & typeof shrinking;

export function loadSimulator(script: string): Simulator {
  const module = { exports: {} };
  const load = compileFunction(script, ["module", "require"], { filename: "simulator.js" }) as (
    module: { exports: object },
    require: NodeJS.Require,
  ) => void;
  load(module, createRequire(import.meta.url));
  return module.exports as Simulator;
}
