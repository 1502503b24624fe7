import type { Env } from "../../../src/coordinator/env.ts";
import { wrappedD1 } from "../../support/workerd/wrapped-d1.ts";
import { env, envWith } from "./fleet.ts";

/**
 * How one execution fails: before it is carried out, after it (only the answer is lost), or without an
 * answer.
 */
export type Fault = "before" | "after" | "hang";

export interface Execution {
  /** The SQL of its statements. */
  sql: string[];
  rowsWritten: number;
}

/** Whether an execution writes a page of a pull. */
export const isPage = ({ sql }: Pick<Execution, "sql">): boolean =>
  sql.some((text) => /^\s*(?:INSERT INTO|DELETE FROM) open_leases|^UPDATE cells SET seen/.test(text));

/**
 * Decides how an execution fails. Called before each one, with its number from 0 and the SQL of its
 * statements.
 */
export type Plan = (execution: number, sql: string[]) => Fault | undefined | Promise<Fault | undefined>;

/** An environment whose D1 fails where `plan` says. `done` lists the executions that were carried out. */
export function faultyD1(plan: Plan = () => undefined): { env: Env; done: Execution[]; asked: () => number } {
  const done: Execution[] = [];
  let count = 0;
  const execute = async (sql: string[], work: () => Promise<unknown>): Promise<unknown> => {
    const fault = await plan(count++, sql);
    if (fault === "hang") return new Promise(() => {});
    if (fault === "before") throw new Error("D1_ERROR: Network connection lost.");
    const result = await work();
    const metas = (Array.isArray(result) ? result : [result]) as { meta?: D1Meta }[];
    done.push({ sql, rowsWritten: metas.reduce((sum, { meta }) => sum + (meta?.rows_written ?? 0), 0) });
    if (fault === "after")
      throw new Error("D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.");
    return result;
  };
  return { env: envWith({ DB: wrappedD1(env.DB, execute) }), done, asked: () => count };
}
