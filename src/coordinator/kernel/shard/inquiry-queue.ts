import { sharedTraces, type Traces } from "../traces.ts";
import { bucketText, executionKey, type AskedHold } from "./rows.ts";

/** The number of holds that one message asks about. It has one question per execution. */
export const MAX_HOLDS = 1_000;

/** The number of messages to one ledger that may wait. */
const MAX_WAITING = 10;

interface Waiting<Answer> {
  /** By execution and name. */
  holds: Map<string, AskedHold>;
  /** Of the callers that wait for the answer. */
  traces: Traces;
  answered: PromiseWithResolvers<Answer>;
}

type SendInquiry<Answer> = (cell: string, holds: readonly AskedHold[], traces: Traces) => Promise<Answer>;

/**
 * Puts the questions of all callers into one message per ledger at a time. The questions that come while it
 * is under way wait for the next message, all together. They never share the answer to the one under way: the
 * ledger may have written it before a commit that their caller knows of (R2).
 */
export class InquiryQueue<Answer> {
  readonly #send: SendInquiry<Answer>;
  /** The messages that wait. A cell has an entry while a message to its ledger is under way. */
  readonly #byCell = new Map<string, Waiting<Answer>[]>();

  /** @param send sends one question for each execution of the holds */
  constructor(send: SendInquiry<Answer>) {
    this.#send = send;
  }

  /**
   * Asks the ledger of a cell about the executions of these holds. Returns the answers to the messages that
   * had the questions. A question for which there is no room is in none of them (M6).
   */
  ask(cell: string, holds: readonly AskedHold[], traces?: Traces): Promise<Answer[]> {
    const underWay = this.#byCell.get(cell);
    const waiting = underWay ?? [];
    const messages = new Set(holds.flatMap((hold) => messageFor(hold, waiting) ?? []));
    if (traces !== undefined)
      for (const message of messages) message.traces = sharedTraces([message.traces, traces]).traces;
    if (underWay === undefined && messages.size > 0) void this.#sendAll(cell, waiting);
    return Promise.all([...messages].map(({ answered }) => answered.promise));
  }

  async #sendAll(cell: string, waiting: Waiting<Answer>[]): Promise<void> {
    this.#byCell.set(cell, waiting);
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        next.answered.resolve(await this.#send(cell, [...next.holds.values()], next.traces));
      } catch (error) {
        next.answered.reject(error);
      }
    }
    this.#byCell.delete(cell);
  }
}

/** Adds a hold to the message that has it already, or to the last one. */
function messageFor<Answer>(hold: AskedHold, waiting: Waiting<Answer>[]): Waiting<Answer> | undefined {
  const name = hold.canonical === undefined ? "" : bucketText(hold.bucket_type, hold.canonical);
  const key = `${executionKey(hold)} ${name}`;
  let message = waiting.find(({ holds }) => holds.has(key)) ?? waiting.at(-1);
  if (message === undefined || (message.holds.size >= MAX_HOLDS && !message.holds.has(key))) {
    if (waiting.length >= MAX_WAITING) return undefined;
    message = { holds: new Map(), traces: undefined, answered: Promise.withResolvers() };
    waiting.push(message);
  }
  message.holds.set(key, hold);
  return message;
}
