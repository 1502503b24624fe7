import { unknown, type Answer } from "./answer.ts";
import type { Call, Connection, LineResult } from "./connection.ts";
import { errorOf } from "./errors.ts";
import { answerOfProblem } from "./problem.ts";
import { checkShape } from "./shape.ts";
import { operations, type ExportLine, type ClaimRecord } from "./api-types.ts";

type End = Extract<ExportLine, { end: unknown }>["end"];

/**
 * The records of a cell as a stream, each once and in order. When the stream breaks, the client continues
 * behind the last record, and its retries count anew after each progress. Leaving the loop ends the request.
 * Another loop continues where the first one stopped.
 */
export class Export implements AsyncIterable<ClaimRecord> {
  readonly #connection: Connection;
  readonly #callFrom: (cursor: string) => Call;
  /**
   * Records with source ids behind the cursor that were given. They come again when the request is repeated.
   */
  readonly #given = new Set<string>();
  #cursor: string;
  #asOf: string | undefined;

  constructor(connection: Connection, callFrom: (cursor: string) => Call, from: string) {
    this.#connection = connection;
    this.#callFrom = callFrom;
    this.#cursor = from;
  }

  /**
   * The last source id whose records were all given, including the record in hand; "" before the first. Save
   * it after you have handled the record. Another process continues from it with `sourceIdGt`, and gets the
   * records of an unfinished source id again.
   */
  get cursor(): string {
    return this.#cursor;
  }

  /**
   * When the first answer began, by the coordinator's clock. Later answers may be newer: an export is no
   * snapshot.
   */
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

  /** Ignores unknown kinds of lines, which are for newer clients. */
  #read(line: ExportLine): LineResult<ClaimRecord, End> {
    if ("record" in line) return this.#readRecord(line);
    if ("as_of" in line) this.#asOf ??= line.as_of;
    if ("error" in line) return { end: answerOfProblem(line.error.status, { ...line.error }) };
    if (!("end" in line)) return undefined;
    // The coordinator may have read a long way without a record.
    if (line.end === "continue") this.#moveTo(line.cursor);
    return { end: { kind: "ok", value: line.end } };
  }

  #moveTo(cursor: string): void {
    if (cursor !== this.#cursor) this.#given.clear();
    this.#cursor = cursor;
  }

  #readRecord({ record, cursor }: { record: ClaimRecord; cursor: string }): LineResult<ClaimRecord, End> {
    checkShape({ record, cursor }, LINE);
    const key = `${record.source.id} ${record.uuid}`;
    const isGiven = this.#given.has(key);
    this.#given.add(key);
    this.#moveTo(cursor);
    return isGiven ? undefined : { item: record };
  }
}

const LINE = { record: operations.listRecords.shape.records[0], cursor: "string" } as const;

/** A request to continue from the same cursor would repeat without end, so it is a failure. */
const failureOf = (answer: Answer<End>): Exclude<Answer<End>, { kind: "ok" }> =>
  answer.kind === "ok"
    ? unknown("the export makes no progress: the coordinator asks to continue from the same cursor")
    : answer;
