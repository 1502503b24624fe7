import { evictAllDurableObjects, reset, runInDurableObject } from "cloudflare:test";
import { env as anyEnv } from "cloudflare:workers";
import { v4 as uuid } from "uuid";
import { MESSAGE_VERSION, type DigestRecordsAnswer, type Reply } from "../../src/core/messages.ts";
import { configOf, type Env } from "../../src/env.ts";
import type { TestObjects } from "../suites/protocol.ts";
import { stubsOf } from "../support/workerd/stubs.ts";

export const env = anyEnv as unknown as Env;

/** Runs a statement in the database of every shard. */
export async function queryShards<Row>(statement: string): Promise<Row[]> {
  const objects = stubsOf(env);
  const shards = Array.from({ length: configOf(env).shards }, (_, index) => objects.shard(index));
  const rows = await Promise.all(
    shards.map((stub) =>
      runInDurableObject(stub, (_, state) => state.storage.sql.exec(statement).toArray() as Row[]),
    ),
  );
  return rows.flat();
}

/** The real objects in workerd, empty except for two registered cells. */
export async function startObjects(): Promise<TestObjects> {
  // `reset` keeps the storage of evicted objects, so all of them are started first.
  await queryShards("SELECT 1");
  for (const cell of ["1", "2"])
    await runInDurableObject(stubsOf(env).ledger(cell), (_, state) => state.storage.getAlarm());
  await reset();
  const objects = stubsOf(env);
  const envelope = { version: MESSAGE_VERSION, placement: configOf(env).placement };
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
        begin: (request) => stub.begin(request),
        decide: (request) => stub.decide(request),
        get: (request) => stub.getLease(request),
        list: (request) => stub.listLeases(request),
        authorize: (request) => stub.authorize(request),
        inquire: (message) => stub.inquire(message),
        pull: (message) => stub.pull(message),
        maintain: (message) => stub.maintain(message),
        status: (message) => stub.status(message),
        setState: (message) => stub.setState(message),
        revoke: (message) => stub.revoke(message),
        leaseStates: (message) => stub.leaseStates(message),
      };
    },
    shard: (index) => {
      const stub = objects.shard(index);
      return {
        exchange: (message) => stub.exchange(message),
        settle: (message) => stub.settle(message),
        lookup: (message) => stub.lookup(message),
        listRecords: (message) => stub.listRecords(message),
        // The platform's types turn the tuple in the answer into an array.
        digestRecords: (message) => stub.digestRecords(message) as Promise<Reply<DigestRecordsAnswer>>,
        ping: (message) => stub.ping(message),
      };
    },
    runUntil: (work) => work,
    restart: () => evictAllDurableObjects(),
    holds: () => queryShards("SELECT canonical, cell, lease FROM hold"),
    claims: () => queryShards("SELECT canonical, cell, value, epoch FROM claim"),
  };
}
