/**
 * Runs in a thread of its own and calls one server until it is told to stop, then posts the number of calls.
 */
import { randomUUID } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { HttpClient } from "../client/http-client.ts";
import { Names } from "../client/names.ts";
import { documentReaders, pipelines, type Turn } from "./anonymous.ts";
import type { Load } from "./loads.ts";

export interface Disturbance {
  load: Load;
  url: string;
  cell: string;
  /** The key of that cell. */
  key: string;
  /** The key of a router. */
  router: string;
}

const BATCH_CLIENTS = 100;
const BATCH_CLAIMS = 1_000;
const LOOKUP_CLIENTS = 32;
const LOOKUP_NAMES = 100;
const LONG_NAME_BYTES = 900;

const { load, url, cell, key, router } = workerData as Disturbance;
const fresh = new Names(`disturb${Date.now()}-`);

const times = (count: number, turn: Turn): Turn[] => Array.from({ length: count }, () => turn);

function readers(): Turn[] {
  const path = `/v1/cells/${cell}/records`;
  const list: Turn = (http) =>
    http.send("GET", `${path}?source_type=RAILS_TABLE_ROUTES&bucket_type=EMAILS`, key);
  const body = JSON.stringify({ source_type: "RAILS_TABLE_ROUTES", ranges: [{}] });
  const digest: Turn = (http) => http.send("POST", `${path}/digests`, key, body);
  return [...times(2, list), ...times(2, digest)];
}

const batch: Turn = async (http) => {
  const creates = fresh.fresh(BATCH_CLAIMS).map((value, index) => ({
    bucket: { type: "ROUTES", value },
    subject: { type: "NAMESPACE", id: String(index + 1) },
    source: { type: "RAILS_TABLE_ROUTES", id: String(index + 1) },
  }));
  const path = `/v1/cells/${cell}/leases/${randomUUID()}`;
  await http.send("PUT", path, key, JSON.stringify({ creates }));
  // Otherwise, leases and their holds would remain for the next round.
  await http.send("POST", `${path}/rollback`, key);
};

function lookupOf(values: readonly string[]): Turn {
  const body = JSON.stringify({ buckets: values.map((value) => ({ type: "EMAILS", value })) });
  return (http) => http.send("POST", "/v1/records/lookup", router, body);
}

/** Marks of several combining classes, which normalization has to sort: the slowest names. */
const MARKS = "\u0300\u0345\u0315\u0316\u031b\u0328";
const longName = (index: number): string => {
  const start = `u${index}`;
  return start + MARKS.repeat(LONG_NAME_BYTES).slice(0, (LONG_NAME_BYTES - start.length) / 2);
};

const turnsOf: Record<Load, () => Turn[]> = {
  readers,
  batches: () => times(BATCH_CLIENTS, batch),
  "long-lookups": () =>
    times(LOOKUP_CLIENTS, lookupOf(Array.from({ length: LOOKUP_NAMES }, (_, index) => longName(index)))),
  lookups: () => times(LOOKUP_CLIENTS, lookupOf(fresh.fresh(LOOKUP_NAMES))),
  "single-lookups": () =>
    times(LOOKUP_CLIENTS, (http) => http.send("GET", "/v1/records/USERNAMES/somebody", router)),
  documents: documentReaders,
  pipelines: () => pipelines(url),
};

const turns = turnsOf[load]();
const http = new HttpClient(url, turns.length);
const over = new AbortController();
parentPort?.once("message", () => over.abort());
let calls = 0;
await Promise.all(
  turns.map(async (turn) => {
    while (!over.signal.aborted) {
      await turn(http);
      calls += 1;
    }
  }),
);
http.close();
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage(calls);
