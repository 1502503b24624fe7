import { isLeaseholdError, type Client, type LeaseholdError } from "../../../client/index.ts";
import type { Change } from "../../../client/api-types.ts";
import { cellsOf } from "../../backup/deployment-cells.ts";
import { leaseIdOf } from "../../backup/lease-id.ts";
import { untilAnswered } from "../../backup/until-answered.ts";
import { CommandError } from "../../framework/command-error.ts";
import { exitCodes } from "../../framework/exit-codes.ts";
import type { Io } from "../../framework/io.ts";
import type { ChangesSince } from "./changes-since.ts";
import { factsOf } from "./evidence.ts";
import type { Names } from "./names.ts";
import type { Plan } from "./plan-file.ts";
import { batchesOf, spelled, tasksOf, type Step, type Task } from "./plan-tasks.ts";

export interface Done {
  claimed: number;
  released: number;
  replaced: number;
  /** What the plan wants is so already, from an earlier run or from a verification. */
  present: number;
  /** Names that are no longer as they were when the plan was made, or whose cell refuses. */
  left: { name: string; cell_id: string; because: string }[];
}

/** Somebody has rolled a lease of the plan back that often. Then its names are left. */
const MAX_ATTEMPTS = 10;

/** The first characters of the UUID of each lease of a plan, so that a repeated run knows them. */
const TAG_LENGTH = 13;

const COUNTED = { creates: "claimed", destroys: "released", replaces: "replaced" } as const;

/** Carries out a plan (J3). */
export class PlanRun {
  readonly #io: Io;
  readonly #client: Client;
  readonly #names: Names;
  readonly #plan: Plan;
  readonly #reason: string;
  readonly #since: ChangesSince;
  readonly #tag: string;
  /** The steps after which a name is as the next step needs it. */
  readonly #ready = new Set<Step>();
  readonly #done: Done = { claimed: 0, released: 0, replaced: 0, present: 0, left: [] };

  /** @param since - what has changed since the plan was made */
  constructor(io: Io, client: Client, names: Names, plan: Plan, reason: string, since: ChangesSince) {
    this.#io = io;
    this.#client = client;
    this.#names = names;
    this.#plan = plan;
    this.#reason = reason;
    this.#since = since;
    this.#tag = leaseIdOf([plan.header.id]).slice(0, TAG_LENGTH);
  }

  async run(): Promise<Done> {
    const all = tasksOf(this.#plan);
    const here = await this.#cellsHere();
    const tasks = all.filter((task) => this.#isHere(task, here));
    for (const batch of batchesOf(tasks.map(({ first }) => first))) {
      await this.#carryOut(batch);
      // At once, so that a name that moves is free only for a moment.
      const next = batch.flatMap((step) =>
        step.task.second !== undefined && this.#ready.has(step) ? [step.task.second] : [],
      );
      for (const creates of batchesOf(next)) await this.#carryOut(creates);
    }
    return this.#done;
  }

  /** The cells that may still have names. */
  async #cellsHere(): Promise<ReadonlySet<string>> {
    const cells = await cellsOf(this.#io, this.#client);
    const here = cells.filter(
      ({ state, removed_at: removedAt }) => removedAt === null && state !== "REMOVING" && state !== "REMOVED",
    );
    return new Set(here.map(({ cell_id: id }) => id));
  }

  /** A task is begun only if all of its cells are here, because a name that moves must get its owner. */
  #isHere({ first, second }: Task, here: ReadonlySet<string>): boolean {
    const gone = [first, second].find((step) => step !== undefined && !here.has(step.cell));
    if (gone === undefined) return true;
    this.#leave(first, `cell ${gone.cell} is removed, or is being removed`);
    return false;
  }

  #leave(step: Step, because: string): void {
    const { name } = step.task.line;
    const isHalf = step === step.task.second;
    this.#done.left.push({
      name: `${name.type} ${name.value}`,
      cell_id: step.cell,
      because: isHalf ? `it was released for this cell, which cannot have it: ${because}` : because,
    });
  }

  #count(step: Step, counter: "claimed" | "released" | "replaced" | "present"): void {
    this.#done[counter] += 1;
    this.#ready.add(step);
  }

  async #carryOut(batch: readonly Step[]): Promise<void> {
    if (!(await this.#since.update()))
      throw new CommandError(
        "the shard no longer tells every change since the plan was made: make a new plan",
        exitCodes.conflict,
      );
    let left = batch.filter((step) => !this.#hasChanged(step));
    for (let attempt = 0; left.length > 0; attempt += 1) {
      const refusal = await this.#lease(left, attempt);
      if (refusal === undefined) {
        for (const step of left) this.#count(step, COUNTED[step.list]);
        return;
      }
      const rest = await this.#withoutConflicts(left, refusal);
      const isOver = rest.length === left.length && refusal.reason !== "LEASE_ROLLED_BACK";
      if (isOver || attempt === MAX_ATTEMPTS) {
        for (const step of rest) this.#leave(step, refusal.message);
        return;
      }
      left = rest;
    }
  }

  /** Whether somebody else has changed a name since the plan was made. Then it is left as it is. */
  #hasChanged(step: Step): boolean {
    const change = this.#newestChange(step);
    if (change === undefined || change.lease_uuid.startsWith(this.#tag)) return false;
    // A name that has moved needs no further step.
    if (this.#isAsPlanned(step, change)) this.#done.present += 1;
    else this.#leave(step, "it has changed since the plan was made");
    return true;
  }

  #newestChange({ task }: Step): Change | undefined {
    return this.#since.byName.get(this.#names.keyOf(task.line.name));
  }

  /** Whether a change has left the name as the plan wants it. */
  #isAsPlanned({ task }: Step, { event, cell_id: cell, claim }: Change): boolean {
    const { known } = task.line;
    if (known === null) return event === "released";
    if (event === "released" || claim === undefined || cell !== known.cell_id) return false;
    const { bucket, subject, source, scope } = claim;
    if (bucket === undefined || subject === undefined || source === undefined) return false;
    const planned = { ...known, bucket: spelled(task.line, known) };
    return factsOf({ bucket, subject, source, ...(scope && { scope }) }) === factsOf(planned);
  }

  /** Returns why the lease was refused. Undefined: it is committed. */
  #lease(steps: readonly Step[], attempt: number): Promise<LeaseholdError | undefined> {
    const [{ cell, list } = { cell: "", list: "creates" }] = steps;
    const { leases } = this.#client.forCell(cell);
    const ops = steps.map(({ op }) => op);
    const { id } = this.#plan.header;
    const uuid = this.#tag + leaseIdOf([id, cell, attempt, list, ops]).slice(TAG_LENGTH);
    return untilAnswered(this.#io, async () => {
      try {
        const { state } = await leases.begin({ [list]: ops, verification: true }, { uuid });
        if (state === "GRANTED") await leases.commit(uuid, { reason: this.#reason });
        return undefined;
      } catch (error) {
        if (isLeaseholdError(error) && isFinal(error)) return error;
        throw error;
      }
    });
  }

  /** Leaves out what stands in the way. */
  async #withoutConflicts(steps: readonly Step[], { conflicts }: LeaseholdError): Promise<Step[]> {
    const found = new Map(conflicts.map((conflict) => [conflict.index, conflict]));
    // The feed says what the cell has, such as from an earlier run.
    await this.#since.update();
    return steps.filter((step, index) => {
      const conflict = found.get(index);
      if (conflict === undefined) return true;
      const { kind, owner } = conflict;
      const change = this.#newestChange(step);
      const isOwn = kind === "mismatch" || (kind === "taken" && owner === "self");
      if (isOwn && change !== undefined && this.#isAsPlanned(step, change)) this.#count(step, "present");
      else if (kind === "taken" && owner === "self")
        this.#leave(step, "the cell has it for another row, or in another scope");
      // A claim that is gone, or that another cell has by now, was released.
      else if (step.list === "destroys" && (kind === "absent" || kind === "not_owner"))
        this.#count(step, "present");
      else this.#leave(step, BECAUSE[kind] ?? kind);
      return false;
    });
  }
}

const BECAUSE: Readonly<Record<string, string>> = {
  taken: "another cell has it",
  leased: "a lease holds it",
  absent: "nobody has it any more",
  not_owner: "another cell has it",
  mismatch: "its claim has changed since the plan was made",
};

/** What stands in the way of one cell or lease. An outage or a key that is refused ends the run instead. */
const REFUSED: ReadonlySet<string> = new Set([
  "FAILED_PRECONDITION",
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "ALREADY_EXISTS",
]);

const isFinal = ({ conflicts, reason, code }: LeaseholdError): boolean =>
  conflicts.length > 0 || reason === "LEASE_ROLLED_BACK" || REFUSED.has(code);
