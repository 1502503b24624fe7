import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { EventDetails, ProtocolEvent } from "./events.ts";

/** The number of events that are kept, which is enough for the panel. */
const KEPT = 200;

/**
 * The recent events of a cell. Each is written to a file at once, because the most interesting ones come
 * right before the process dies.
 */
export class Recorder {
  readonly #file: string;
  #events: ProtocolEvent[];

  constructor(file: string) {
    this.#file = file;
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).slice(-KEPT) : [];
    this.#events = lines.flatMap(parsed);
  }

  /** All events, oldest first. */
  get events(): readonly ProtocolEvent[] {
    return this.#events;
  }

  add(details: EventDetails): void {
    const event = { ...details, atMs: Date.now() };
    appendFileSync(this.#file, `${JSON.stringify(event)}\n`);
    this.#events = [...this.#events.slice(1 - KEPT), event];
  }
}

/** Skips a line that is incomplete because the process died. */
function parsed(line: string): ProtocolEvent[] {
  try {
    return [JSON.parse(line) as ProtocolEvent];
  } catch {
    return [];
  }
}
