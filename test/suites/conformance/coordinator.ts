import { Client, type KeyName } from "./client.ts";

export interface StartOptions {
  /** The ids of the cells that are registered and have a key. */
  cells?: readonly string[];
  /** Variables as in wrangler.toml. */
  variables?: Record<string, string>;
}

/** A coordinator under test. */
export interface Started {
  url: string;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  keys: { cell(id: string): string; readonly operator: string; readonly router: string };
  /** Runs the cron once. */
  cron(): Promise<void>;
  /**
   * Rings the alarms of the cells' ledgers at once. Otherwise they ring seconds after a decision. Absent if
   * the host cannot.
   */
  ringAlarms?: () => Promise<void>;
  /** Returns the calls of objects and databases so far, such as `DIRECTORY.types`, if it can be told. */
  asked?: () => readonly string[];
  close(): Promise<void>;
}

/**
 * Starts an empty coordinator with these cells, by default 1 and 2. A coordinator that was started before is
 * not used any more.
 */
export type Start = (options: StartOptions) => Promise<Started>;

/** Starts a coordinator and returns a client of it. */
export type Open = (options?: StartOptions) => Promise<Coordinator>;

/** The key of a role, by its name. Any other name is a key itself. */
export function keyIn(keys: Started["keys"], name: KeyName): string {
  const cell = /^cell (.+)$/.exec(name)?.[1];
  if (cell !== undefined) return keys.cell(cell);
  return name === "operator" || name === "router" ? keys[name] : name;
}

export class Coordinator extends Client {
  readonly cron: () => Promise<void>;
  readonly ringAlarms: () => Promise<void>;
  /** The calls of objects and databases so far. Undefined: the coordinator cannot tell. */
  readonly asked: () => readonly string[] | undefined;

  constructor(started: Started) {
    const { url, fetch, keys, ringAlarms = async () => {}, asked = () => undefined } = started;
    super({ url, fetch, keyOf: (name) => keyIn(keys, name) });
    this.cron = () => started.cron();
    this.ringAlarms = ringAlarms;
    this.asked = asked;
  }
}
