import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { EventDetails, ProtocolEvent } from "./events.ts";

/** As many as a panel can show. */
const KEPT = 200;

/**
 * The recent events of a cell. They are in a file, at once: the most interesting ones come right before the
 * process dies.
 */
export class Recorder {
  readonly #file: string;
  #events: ProtocolEvent[];

  constructor(file: string) {
    this.#file = file;
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).slice(-KEPT) : [];
    this.#events = lines.flatMap(parsed);
  }

  /** Oldest first. */
  get events(): readonly ProtocolEvent[] {
    return this.#events;
  }

  add(details: EventDetails): void {
    const event = { ...details, atMs: Date.now() };
    appendFileSync(this.#file, `${JSON.stringify(event)}\n`);
    this.#events = [...this.#events.slice(1 - KEPT), event];
  }
}

/** A line that was cut off is left out. */
function parsed(line: string): ProtocolEvent[] {
  try {
    return [JSON.parse(line) as ProtocolEvent];
  } catch {
    return [];
  }
}
