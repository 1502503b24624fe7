import type { Sql } from "../../src/core/ports.ts";
import { Tables, type Steps } from "../../src/core/tables.ts";
import { VirtualClock } from "./virtual-clock.ts";

/** Makes the tables of an object without the object. */
export const migrate = (sql: Sql, steps: Steps): Tables =>
  new Tables({ sql, clock: new VirtualClock() }, steps);
