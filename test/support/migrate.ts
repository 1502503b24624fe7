import type { Sql } from "../../src/coordinator/kernel/ports.ts";
import { Tables, type Steps } from "../../src/coordinator/kernel/tables.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** Makes the tables of an object without the object. */
export const migrate = (sql: Sql, steps: Steps): Tables =>
  new Tables({ sql, clock: new VirtualClock() }, steps);
