import { and, eq } from "drizzle-orm";
import { ask } from "../core/ask.ts";
import type { Cell } from "../core/directory/messages.ts";
import { isSamePoint } from "../core/history.ts";
import type { HistoryPoint, ToldDirectory } from "../core/messages.ts";
import { ok, refused, type Result } from "../core/refusal.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "./cron-run.ts";
import { causeOf } from "./failure.ts";
import { seenPoints } from "./schema.ts";

/** What one part has seen of the directory. */
export interface DirectorySighting {
  noticedBy: string;
  point: HistoryPoint;
}

/**
 * Lets one run of the cron notice that the directory went back in time. D1 and the ledgers remember how far
 * they have seen it. The run asks the directory whether it still has these points (H2), and tells the ledgers
 * and D1 how far it has got since (H3). They forget a point only if the directory has confirmed it (H5).
 */
export class DirectoryWatch {
  readonly #run: CronRun;
  /** False if the directory cannot be reached, or has gone back in time. Then it is asked nothing more. */
  #isIntact = false;
  /** How far the directory has got. Null before its first change. */
  #point: HistoryPoint | null = null;
  /** The points that the directory has confirmed in this run. */
  readonly #confirmed: HistoryPoint[] = [];

  constructor(run: CronRun) {
    this.#run = run;
  }

  /** Reads the cells. The request has the point that D1 remembers, and D1 gets the newer one. */
  async readCells(): Promise<Result<Cell[]>> {
    const { database, envelope, objects, runtime } = this.#run;
    const remembered = await database.run("read point", (orm) =>
      orm.select().from(seenPoints).where(eq(seenPoints.part, DIRECTORY)),
    );
    const [row] = remembered.ok ? remembered.value : [];
    const seen = row === undefined ? undefined : { incarnation: row.incarnation, position: row.position };
    const answer = await ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
      objects.directory().snapshot({ ...envelope, ...(seen === undefined ? {} : { seen }) }),
    );
    if (answer.kind !== "ok")
      return refused("UNAVAILABLE", `the directory cannot be reached: ${causeOf(answer)}`);
    const { cells, point } = answer.value;
    this.#isIntact = true;
    this.#point = point;
    if (remembered.ok && point !== null && !isSamePoint(seen, point)) await this.#remember(seen, point);
    return ok(cells);
  }

  /** Stores the point in D1, unless another run has replaced the point that this run has sent. */
  #remember(sent: HistoryPoint | undefined, point: HistoryPoint): Promise<Result<unknown>> {
    return this.#run.database.run("save point", (orm) =>
      sent === undefined
        ? orm
            .insert(seenPoints)
            .values({ part: DIRECTORY, ...point })
            .onConflictDoNothing()
        : orm
            .update(seenPoints)
            .set(point)
            .where(
              and(
                eq(seenPoints.part, DIRECTORY),
                eq(seenPoints.incarnation, sent.incarnation),
                eq(seenPoints.position, sent.position),
              ),
            ),
    );
  }

  /** Asks the directory, in one message, whether it has those of these points that it has not told itself. */
  async compare(sightings: readonly DirectorySighting[]): Promise<Result<null>> {
    const { envelope, objects, runtime } = this.#run;
    const points = sightings.filter(({ point }) => !this.#isConfirmed(point));
    if (!this.#isIntact || points.length === 0) return ok(null);
    const answer = await ask(runtime.clock, CALL_TIMEOUT_MS, async () =>
      objects.directory().compare({ ...envelope, points }),
    );
    if (answer.kind === "ok") {
      this.#confirmed.push(...points.map(({ point }) => point));
      return ok(null);
    }
    this.#isIntact = false;
    return refused("UNAVAILABLE", `the directory has not confirmed its history: ${causeOf(answer)}`);
  }

  /** Returns what a ledger is told that remembers this point. */
  newsFor(remembered: HistoryPoint | null): { directory?: ToldDirectory } {
    if (!this.#isIntact || this.#point === null || isSamePoint(remembered, this.#point)) return {};
    const isConfirmed = remembered !== null && this.#isConfirmed(remembered);
    return { directory: { point: this.#point, confirmed: isConfirmed ? remembered : null } };
  }

  #isConfirmed(point: HistoryPoint): boolean {
    return isSamePoint(this.#point, point) || this.#confirmed.some((each) => isSamePoint(each, point));
  }
}

/** The name of the directory in D1. */
const DIRECTORY = "directory";
