import type { Batch } from "../../../client/api-types.ts";
import { grouped } from "../../../status/grouped.ts";
import type { Plan, PlanLine } from "./plan-file.ts";

type List = "creates" | "destroys" | "replaces";
type ApiOp = NonNullable<Batch[List]>[number];

/** One op of a lease. */
export interface Step {
  task: Task;
  list: List;
  cell: string;
  op: ApiOp;
}

/** What is to be done with one name. A move is a destroy and then a create. */
export interface Task {
  line: PlanLine;
  first: Step;
  /** Only once the first step is done. */
  second: Step | undefined;
}

/** Both are far below what a begin may have by default. */
const OPS_PER_LEASE = 500;
const CHARS_PER_LEASE = 300_000;

export function tasksOf({ lines }: Plan): Task[] {
  return lines.flatMap((line) => {
    const { now, known } = line;
    if (line.do === null || line.do === "leave") return [];
    const task = { line } as Task;
    const step = (list: List, cell: string, op: object): Step => ({ task, list, cell, op: op as ApiOp });
    const steps: Step[] = [];
    if (now !== null && line.do !== "replace")
      steps.push(step("destroys", now.cell_id, { bucket: spelled(line, now), epoch: now.epoch }));
    if (known !== null) {
      const { subject, source, scope } = known;
      const claim = { bucket: spelled(line, known), subject, source, ...(scope && { scope }) };
      const isReplace = now !== null && line.do === "replace";
      const op = isReplace ? { ...claim, epoch: now.epoch } : claim;
      steps.push(step(isReplace ? "replaces" : "creates", known.cell_id, op));
    }
    const [first, second] = steps;
    return first === undefined ? [] : [Object.assign(task, { first, second })];
  });
}

export const spelled = (
  { name }: Pick<PlanLine, "name">,
  { value = name.value }: { value?: string },
): PlanLine["name"] => ({ ...name, value });

/** Returns what one lease does at a time: steps of one cell and one list. */
export function* batchesOf(steps: readonly Step[]): Generator<Step[], void, undefined> {
  for (const alike of grouped(steps, ({ cell, list }) => `${list} ${cell}`).values()) {
    let batch: Step[] = [];
    let chars = 0;
    for (const step of alike) {
      const length = JSON.stringify(step.op).length;
      if (batch.length === OPS_PER_LEASE || (batch.length > 0 && chars + length > CHARS_PER_LEASE)) {
        yield batch;
        batch = [];
        chars = 0;
      }
      batch.push(step);
      chars += length;
    }
    if (batch.length > 0) yield batch;
  }
}
