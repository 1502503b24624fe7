import { and, eq } from "drizzle-orm";
import type { Authority } from "../../identities/identities.ts";
import { ask } from "../../../kernel/ask.ts";
import type { Snapshot } from "../../../kernel/directory/messages.ts";
import type { KeyPage } from "../../keys/messages.ts";
import { isSamePoint } from "../../../kernel/instances.ts";
import type { Envelope, HistoryPoint } from "../../../kernel/messages.ts";
import type { ToldDirectory } from "../messages.ts";
import type { Answer } from "../../../kernel/ports.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { CALL_TIMEOUT_MS, type CronRun } from "../../../cron/cron-run.ts";
import { causeOf } from "../../../d1/database.ts";
import { isLostBy } from "./lost-part.ts";
import { DIRECTORY, readSeen } from "../../../d1/directory-copies.ts";
import { seenPoints } from "../../../d1/schema.ts";

/** What one part has seen of the directory. */
export interface DirectorySighting {
  noticedBy: string;
  point: HistoryPoint;
}

/** What a run of the cron needs of the directory. */
interface RegisteredParts extends Pick<Snapshot, "isPlaced" | "cells" | "types" | "growth"> {
  authorities: readonly Authority[];
  /** The position of the copy of a growth in D1. 0: none has ever run, or D1 cannot be read. */
  growthCopiedAt: number;
}

/**
 * Lets one run of the cron notice that the directory went back in time. D1 and the ledgers remember how far
 * they have seen it. The run asks the directory whether it still has these points (H2), and tells the ledgers
 * and D1 how far it has got since (H3). They forget a point only if the directory has confirmed it (H5).
 */
export class DirectoryWatch {
  readonly #run: CronRun;
  /** The point that D1 has. Null: none. Undefined: D1 cannot be read. */
  #stored: HistoryPoint | null | undefined;
  /** False if the directory cannot be reached, or has gone back in time. Then it is asked nothing more. */
  #isIntact = false;
  /**
   * How far the directory had got when the run began. Null before its first change. The ledgers are told no
   * later point, because it may be from the time after a loss, and what they have seen is compared before.
   */
  #point: HistoryPoint | null = null;
  /** The points that the directory has confirmed in this run. */
  readonly #confirmed: HistoryPoint[] = [];

  constructor(run: CronRun) {
    this.#run = run;
  }

  /** Reads the cells, the authorities of certificates, and the types unless D1 already has them. */
  async readSnapshot(): Promise<Result<RegisteredParts>> {
    const { database, objects } = this.#run;
    const seen = await readSeen(database);
    if (seen.ok) this.#stored = seen.value.point ?? null;
    const more = seen.ok
      ? { copiedAt: seen.value.typesPosition, growthCopiedAt: seen.value.growthPosition }
      : {};
    const read = await this.#ask((envelope) => objects.directory().snapshot({ ...envelope, ...more }));
    if (!read.ok) return read;
    const { isPlaced, placement, growth, cells, types, identities, point } = read.value.answer;
    // Until a placement is fixed, the directory only repeats what it was sent (P2).
    if (isPlaced) this.#run.placement.learn(placement);
    this.#isIntact = true;
    this.#point = point;
    const isCopied = seen.ok && types?.position === seen.value.typesPosition;
    const authorities = identities?.authorities ?? [];
    const growthCopiedAt = seen.ok ? seen.value.growthPosition : 0;
    return ok({ isPlaced, growth, growthCopiedAt, cells, types: isCopied ? null : types, authorities });
  }

  /**
   * Reads a page of keys. Returns null if D1 cannot remember how far the directory had got: then D1 must not
   * get the page, because nobody would notice if the directory lost it.
   */
  async readKeys(afterPosition: number, limit: number): Promise<Result<KeyPage | null>> {
    const { objects } = this.#run;
    const read = await this.#ask((envelope) =>
      objects.directory().listKeys({ ...envelope, afterPosition, limit }),
    );
    return read.ok ? ok(read.value.isRemembered ? read.value.answer : null) : read;
  }

  /**
   * Asks the directory for something. The message has the point that D1 remembers. D1 gets the point of the
   * answer before it gets anything else of it.
   */
  async #ask<T extends { point: HistoryPoint | null }>(
    call: (envelope: Envelope) => Promise<Result<T>>,
  ): Promise<Result<{ answer: T; isRemembered: boolean }>> {
    const seen = this.#stored ?? undefined;
    const send = (): Promise<Answer<T>> =>
      ask(this.#run.runtime.clock, CALL_TIMEOUT_MS, async () =>
        call({ ...this.#run.envelope, ...(seen === undefined ? {} : { seen }) }),
      );
    const placement = this.#run.placement.current;
    let asked = await send();
    // A directory that has another placement refuses the question, and says which one.
    if (asked.kind === "refused" && this.#run.placement.current !== placement) asked = await send();
    if (asked.kind !== "ok")
      return refused(
        "UNAVAILABLE",
        `the directory cannot be reached: ${causeOf(asked)}`,
        isLostBy(asked) === true ? { reason: "HISTORY_LOST" } : {},
      );
    const { point } = asked.value;
    const isRemembered = point === null || isSamePoint(seen, point) || (await this.#remember(seen, point));
    return ok({ answer: asked.value, isRemembered });
  }

  /** Stores the point in D1, unless another run has replaced the point that this run has sent. */
  async #remember(sent: HistoryPoint | undefined, point: HistoryPoint): Promise<boolean> {
    if (this.#stored === undefined) return false;
    const stored = await this.#run.database.run("save point", (orm) =>
      sent === undefined
        ? orm
            .insert(seenPoints)
            .values({ part: DIRECTORY, ...point })
            .onConflictDoNothing()
            .returning()
        : orm
            .update(seenPoints)
            .set(point)
            .where(
              and(
                eq(seenPoints.part, DIRECTORY),
                eq(seenPoints.incarnation, sent.incarnation),
                eq(seenPoints.position, sent.position),
              ),
            )
            .returning(),
    );
    if (!stored.ok || stored.value.length === 0) return false;
    this.#stored = point;
    return true;
  }

  /** Asks the directory whether it has these points, in one message. It has those that it has told itself. */
  async compare(sightings: readonly DirectorySighting[]): Promise<Result<null>> {
    const { envelope, objects, runtime } = this.#run;
    const points = distinct(sightings.filter(({ point }) => !this.#isConfirmed(point)));
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

/** Most ledgers have seen the same point. */
const distinct = (sightings: readonly DirectorySighting[]): DirectorySighting[] => [
  ...new Map(sightings.map((each) => [`${each.point.incarnation}/${each.point.position}`, each])).values(),
];
