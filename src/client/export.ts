import { unknown, type Answer } from "./answer.ts";
import type { Call, Connection, LineResult } from "./connection.ts";
import { errorOf } from "./errors.ts";
import { answerOfProblem } from "./problem.ts";
import { checkShape } from "./shape.ts";
import { operations, type ExportLine, type Record as ClaimRecord } from "./api-types.ts";

type End = Extract<ExportLine, { end: unknown }>["end"];

/**
 * Records as they come from the coordinator, each once and in order. What breaks is gone on with behind the last record that was given, with
 * the client's retries, which count anew whenever it gets ahead. Leaving the loop ends the request; another loop goes on where it was left.
 */
export class Export implements AsyncIterable<ClaimRecord> {
  readonly #connection: Connection;
  readonly #callFrom: (cursor: string) => Call;
  /** Of source ids behind the cursor: they come again when the request is made again. */
  readonly #given = new Set<string>();
  #cursor: string;
  #asOf: string | undefined;

  constructor(connection: Connection, callFrom: (cursor: string) => Call, from: string) {
    this.#connection = connection;
    this.#callFrom = callFrom;
    this.#cursor = from;
  }

  /**
   * The last source id all of whose records were given, the one in hand included; "" before there is any. Kept once the record in hand is dealt
   * with, it is the `sourceIdGt` with which another process goes on: the records of a source id that was left in the middle come again there.
   */
  get cursor(): string {
    return this.#cursor;
  }

  /** When the first answer began, by the coordinator's clock. Later ones may be newer: what is exported is no snapshot. */
  get asOf(): string | undefined {
    return this.#asOf;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ClaimRecord, void, undefined> {
    for (let attempt = 1; ; attempt += 1) {
      const { size } = this.#given;
      const from = this.#cursor;
      const call = this.#callFrom(from);
      const answer = yield* this.#connection.lines<ClaimRecord, End>(call, attempt, (line) =>
        this.#read(line as ExportLine),
      );
      if (answer.kind === "ok" && answer.value === "complete") return;
      const isAhead = this.#cursor !== from || this.#given.size > size;
      if (isAhead) attempt = answer.kind === "ok" ? 0 : 1;
      if (isAhead && answer.kind === "ok") continue;
      const stopped = await this.#connection.retry(call, failureOf(answer), attempt);
      if (stopped !== undefined) throw errorOf(stopped);
    }
  }

  /** Kinds of lines that are not known here are for newer clients. */
  #read(line: ExportLine): LineResult<ClaimRecord, End> {
    if ("record" in line) return this.#readRecord(line);
    if ("as_of" in line) this.#asOf ??= line.as_of;
    if ("error" in line) return { end: answerOfProblem(line.error.status, { ...line.error }) };
    return "end" in line ? { end: { kind: "ok", value: line.end } } : undefined;
  }

  #readRecord({ record, cursor }: { record: ClaimRecord; cursor: string }): LineResult<ClaimRecord, End> {
    checkShape({ record, cursor }, LINE);
    const key = `${record.source.id} ${record.uuid}`;
    const isGiven = this.#given.has(key);
    this.#given.add(key);
    if (cursor !== this.#cursor) this.#given.clear();
    this.#cursor = cursor;
    return isGiven ? undefined : { item: record };
  }
}

const LINE = { record: operations.listRecords.shape.records[0], cursor: "string" } as const;

/** An answer that is to be gone on with, and has not moved, would go on like that for ever. */
const failureOf = (answer: Answer<End>): Exclude<Answer<End>, { kind: "ok" }> =>
  answer.kind === "ok"
    ? unknown("the export does not get ahead: it is to be continued from where it began")
    : answer;
