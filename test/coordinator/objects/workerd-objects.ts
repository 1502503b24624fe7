import { evictAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env as anyEnv } from "cloudflare:workers";
import { v4 as uuid } from "uuid";
import type { Result } from "../../../src/coordinator/kernel/refusal.ts";
import type { Told } from "../../../src/coordinator/kernel/messages.ts";
import { placementOf } from "../../../src/coordinator/kernel/placement.ts";
import { configOf, type Env } from "../../../src/coordinator/env.ts";
import type { TestObjects } from "../../suites/protocol/calls.ts";
import { HOLDS } from "../../support/holds.ts";
import { operator, STAMP } from "../../support/ops.ts";
import { resetAll } from "../../support/workerd/reset-all.ts";
import { stubsOf } from "../../support/workerd/stubs.ts";

export const env = anyEnv as unknown as Env;

/** Runs a statement in the database of every shard. */
export async function queryShards<Row>(statement: string): Promise<Row[]> {
  const objects = stubsOf(env);
  const shards = Array.from({ length: configOf(env).initialShards }, (_, index) => objects.shard(index));
  const rows = await Promise.all(
    shards.map((stub) =>
      runInDurableObject(stub, (_, state) => state.storage.sql.exec(statement).toArray() as Row[]),
    ),
  );
  return rows.flat();
}

/** The real objects in workerd, empty except for two registered cells. */
export async function startObjects(): Promise<TestObjects> {
  await resetAll(env);
  const objects = stubsOf(env);
  const envelope = {
    ...STAMP,
    placement: placementOf(configOf(env).initialShards),
    operator,
  };
  for (const cell of ["1", "2"]) {
    await objects.directory().addCell({
      ...envelope,
      cell,
      name: `cell-${cell}`,
      address: `https://cell-${cell}.example`,
      locationHint: null,
    });
  }
  return {
    envelope,
    uuid: () => uuid(),
    ledger: (cell) => {
      const stub = objects.ledger(cell);
      return {
        begin: (request) => plain(stub.begin(request)),
        decide: (request) => plain(stub.decide(request)),
        getLease: (request) => plain(stub.getLease(request)),
        listLeases: (request) => plain(stub.listLeases(request)),
        authorize: (request) => plain(stub.authorize(request)),
        inquire: (message) => plain(stub.inquire(message)),
        pull: (message) => plain(stub.pull(message)),
        maintain: (message) => plain(stub.maintain(message)),
        status: (message) => plain(stub.status(message)),
        setState: (message) => plain(stub.setState(message)),
        revoke: (message) => plain(stub.revoke(message)),
        leaseStates: (message) => plain(stub.leaseStates(message)),
      };
    },
    shard: (index) => {
      const stub = objects.shard(index);
      return {
        exchange: (message) => plain(stub.exchange(message)),
        settle: (message) => plain(stub.settle(message)),
        lookup: (message) => plain(stub.lookup(message)),
        listRecords: (message) => plain(stub.listRecords(message)),
        digestRecords: (message) => plain(stub.digestRecords(message)),
        ping: (message) => plain(stub.ping(message)),
      };
    },
    runUntil: (work) => work,
    restart: () => evictAllDurableObjects(),
    holds: () => queryShards(`SELECT canonical, cell, lease FROM ${HOLDS}`),
    claims: () => queryShards("SELECT canonical, cell, value, epoch FROM claim"),
  };
}

/** Leaves out what an answer tells about its object, so that answers can be compared. */
async function plain<T>(answer: Promise<Result<T> & Told>): Promise<Result<T>> {
  const { point: _, shards: __, speaks: ___, format: ____, ...reply } = await answer;
  return reply;
}
