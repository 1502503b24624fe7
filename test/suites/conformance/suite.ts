/**
 * Tests what the HTTP API promises, from outside. The tests know a URL and keys and nothing else, so they can
 * run against any implementation of a coordinator.
 */
import { afterAll, describe } from "vitest";
import { adminSuite } from "./admin.ts";
import { answerSuite } from "./answers.ts";
import { Client } from "./client.ts";
import { exportSuite } from "./exports.ts";
import { leaseSuite } from "./lease-suite.ts";
import { limitSuite } from "./limits.ts";
import { nameSuite } from "./names.ts";
import { pageSuite } from "./pages.ts";
import { recordSuite } from "./records.ts";
import { routeSuite } from "./routes.ts";
import { staleSuite } from "./stale.ts";
import { verificationSuite } from "./verification.ts";

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
  /** Returns how many times objects and databases were called so far, if the coordinator can tell. */
  asked?: () => number;
  close(): Promise<void>;
}

/**
 * Starts an empty coordinator with these cells, by default 1 and 2. A coordinator that was started before is
 * not used any more.
 */
export type Start = (options: StartOptions) => Promise<Started>;

/** Starts a coordinator and returns a client of it. */
export type Open = (options?: StartOptions) => Promise<Coordinator>;

export class Coordinator extends Client {
  readonly cron: () => Promise<void>;
  readonly asked: () => number;

  constructor(started: Started) {
    const { url, fetch, keys, asked = () => 0 } = started;
    const keyOf = (name: string): string => {
      const cell = /^cell (.+)$/.exec(name)?.[1];
      if (cell !== undefined) return keys.cell(cell);
      return name === "operator" || name === "router" ? keys[name] : name;
    };
    super({ url, fetch, keyOf });
    this.cron = () => started.cron();
    this.asked = asked;
  }
}

export function conformanceSuite(name: string, start: Start): void {
  const started: Started[] = [];
  const open: Open = async (options = {}) => {
    const one = await start(options);
    started.push(one);
    return new Coordinator(one);
  };

  describe(name, () => {
    afterAll(async () => {
      for (const one of started) await one.close();
    });
    describe("leases", () => leaseSuite(open));
    describe("names", () => nameSuite(open));
    describe("records", () => recordSuite(open));
    describe("exports", () => exportSuite(open));
    verificationSuite(open);
    describe("pages", () => pageSuite(open));
    describe("stale leases", () => staleSuite(open));
    describe("cells and keys", () => adminSuite(open));
    describe("limits", () => limitSuite(open));
    describe("answers", () => answerSuite(open));
    describe("routes", () => routeSuite(open));
  });
}
