/**
 * Sequences of requests about one batch: refused requests change nothing, and decisions are final, whatever
 * comes in between.
 */
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RouteId } from "../../../src/coordinator/api/contract.ts";
import { shipped } from "../../support/types.ts";
import { hostileRequests } from "./hostile.ts";
import { nearlyValidRequests } from "./mutations.ts";
import { sendAndCheck } from "./oracles.ts";
import { NAME_MARK, REGISTERED } from "./pools.ts";
import { FuzzServer } from "./server.ts";
import { fuzz, TEST_MS } from "./settings.ts";
import type { FuzzRequest } from "./fuzz-request.ts";
import type { Row } from "./state.ts";
import type { Tree } from "./tree.ts";

let server: FuzzServer;

beforeAll(async () => {
  server = await FuzzServer.start();
}, TEST_MS);

afterAll(() => server.stop());

type LeaseRoute = "beginLease" | "commitLease" | "rollbackLease" | "getLease";

/** The requests about a lease, including hostile ones. */
type Step =
  | { kind: "plain"; id: LeaseRoute; by: "cell" | "operator" }
  | { kind: "other batch" }
  | { kind: "other cell"; id: LeaseRoute }
  | { kind: "request"; request: FuzzRequest };

const leaseRoutes = ["beginLease", "commitLease", "rollbackLease", "getLease"] as const;

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("plain" as const),
      id: fc.constantFrom(...leaseRoutes),
      by: fc.constantFrom("cell" as const, "operator" as const),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "other batch" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("other cell" as const), id: fc.constantFrom(...leaseRoutes) }),
  },
  ...leaseRoutes.flatMap((id) =>
    [nearlyValidRequests(id), hostileRequests(id)].map((requests) => ({
      weight: 1,
      arbitrary: requests.map((request) => ({ kind: "request" as const, request })),
    })),
  ),
);

interface LeaseSequence {
  cell: string;
  names: readonly string[];
  leases: readonly { uuid: string; kind: "creates" | "destroys" | "replaces"; steps: readonly Step[] }[];
}

/** The requests of one sequence, on average. */
const REQUESTS = 11;

const uuids = fc.uuid({ version: [4, 7] });

const sequences: fc.Arbitrary<LeaseSequence> = fc.record({
  cell: fc.constantFrom(...REGISTERED),
  // New names, so that a sequence begins without claims.
  names: fc.uniqueArray(
    uuids.map((id) => `${NAME_MARK}-${id}`),
    { minLength: 1, maxLength: 5 },
  ),
  leases: fc
    .tuple(
      uuids,
      uuids,
      fc.constantFrom("destroys" as const, "replaces" as const),
      fc.array(steps, { maxLength: 5 }),
      fc.array(steps, { maxLength: 5 }),
    )
    .map(([first, second, then, before, after]) => [
      { uuid: first, kind: "creates" as const, steps: before },
      { uuid: second, kind: then, steps: after },
    ]),
});

const batchOf = ({ names }: LeaseSequence, kind: string, id: Tree): Tree => ({
  [kind]: names.map((value): Tree => ({
    bucket: { type: "USERNAMES", value },
    subject: { type: "USER", id },
    source: { type: "RAILS_TABLE_USERS", id },
  })),
});

function requestOf(sequence: LeaseSequence, uuid: string, kind: string, step: Step): FuzzRequest {
  if (step.kind === "request")
    return { ...step.request, params: { ...step.request.params, ...about(step.request, sequence, uuid) } };
  const cell =
    step.kind === "other cell" ? (REGISTERED.find((other) => other !== sequence.cell) ?? "") : sequence.cell;
  const isOperator = step.kind === "plain" && step.by === "operator";
  const id = step.kind === "other batch" ? "beginLease" : step.id;
  const batch =
    id === "beginLease" ? batchOf(sequence, kind, step.kind === "other batch" ? 2 : 1) : undefined;
  const body =
    id === "beginLease" ? batch : isOperator && id !== "getLease" ? { reason: "a test sequence" } : undefined;
  return {
    id,
    key: isOperator ? "operator" : `cell ${cell}`,
    params: { cell, uuid },
    query: [],
    body,
    headers: [],
    notes: [],
  };
}

/** Replaces only parameters that were not changed, so that what is wrong with the request stays wrong. */
function about({ key, notes }: FuzzRequest, { cell }: LeaseSequence, uuid: string): Record<string, string> {
  if (notes.some((note) => /path|text/.test(note))) return {};
  return { uuid, ...(key === `cell ${cell}` || key === "operator" ? { cell } : {}) };
}

interface Known {
  state?: "GRANTED" | "COMMITTED" | "ROLLED_BACK";
}

/** Checks an answer about the lease against the answers before. */
function learn(known: Known, request: FuzzRequest, uuid: string, cell: string, text: string): void {
  if (request.params["uuid"] !== uuid || request.params["cell"] !== cell) return;
  const state = (JSON.parse(text) as { lease?: { state: NonNullable<Known["state"]> } }).lease?.state;
  if (state === undefined) return;
  if (known.state === "COMMITTED" || known.state === "ROLLED_BACK") expect(state).toBe(known.state);
  known.state = state;
}

test(
  "a lease keeps its rules during any other requests about it",
  async () => {
    const check = async (sequence: LeaseSequence): Promise<void> => {
      for (const { uuid, kind, steps: asked } of sequence.leases) {
        const known: Known = {};
        const begin: Step = { kind: "plain", id: "beginLease", by: "cell" };
        const end: Step = { kind: "plain", id: "commitLease", by: "operator" };
        const away: Step = { kind: "plain", id: "rollbackLease", by: "cell" };
        for (const step of [begin, ...asked, end, away]) {
          const request = requestOf(sequence, uuid, kind, step);
          const { status, text } = await sendAndCheck(server, request);
          if (status < 300) learn(known, request, uuid, sequence.cell, text);
        }
        expect(known.state).not.toBe("GRANTED");
      }
    };
    await fuzz(12, sequences, check, [], REQUESTS);
  },
  TEST_MS,
);

/** Reads all pages of a listing. */
async function listed(
  route: RouteId,
  params: Record<string, string>,
  query: [string, string][],
  field: string,
): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let token = ""; ;) {
    const paged: [string, string][] = [...query, ["page_size", "50"], ["page_token", token]];
    const { text } = await sendAndCheck(server, {
      id: route,
      key: "operator",
      params,
      query: paged,
      headers: [],
      notes: [],
    });
    const page = JSON.parse(text) as Record<string, unknown>;
    items.push(...(page[field] as Record<string, unknown>[]));
    token = String(page["next_page_token"]);
    if (token === "") return items;
  }
}

const keysOf = (rows: readonly Row[], ...columns: string[]): string[] =>
  rows.map((row) => columns.map((column) => String(row[column])).join(" ")).toSorted();

test(
  "afterwards the listings of every cell match the files on disk",
  async () => {
    for (const cell of REGISTERED) {
      const leases = await listed("listLeases", { cell }, [], "leases");
      const granted = server.state
        .rows(new RegExp(`^cell-${cell}$`), "lease")
        .filter((row) => row["state"] === "GRANTED" && row["transfer"] === null);
      expect(keysOf(leases, "uuid")).toEqual(keysOf(granted, "lease"));
      const records: Record<string, unknown>[] = [];
      for (const type of shipped.names("source"))
        records.push(...(await listed("listRecords", { cell }, [["source_type", type]], "records")));
      // A create is listed as soon as its lease is granted. No begin is running here, so every hold belongs
      // to a granted lease.
      const holds = server.state
        .rows(/^shard-/, "hold")
        .filter((row) => row["cell"] === cell && row["kind"] === "create");
      const claims = server.state.rows(/^shard-/, "claim").filter((row) => row["cell"] === cell);
      expect(keysOf(records, "uuid")).toEqual(keysOf([...claims, ...holds], "uuid"));
    }
    const cells = await listed("listCells", {}, [], "cells");
    expect(keysOf(cells, "cell_id", "name", "address")).toEqual(
      keysOf(server.state.rows(/^directory$/, "cell"), "cell", "name", "address"),
    );
    const keys = await listed("listKeys", {}, [], "keys");
    expect(keysOf(keys, "id", "role")).toEqual(
      keysOf(server.state.rows(/^directory$/, "minted_key"), "key_id", "role"),
    );
  },
  TEST_MS,
);
