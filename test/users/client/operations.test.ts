import { expect, it } from "vitest";
import type { Client } from "../../../src/users/client/index.ts";
import { operations } from "../../../src/users/client/api-types.ts";
import { fakeClient, problem, UUID } from "./fake.ts";

/** A call of every method of the client, by its name. */
const calls: Record<string, (client: Client) => Promise<unknown>> = {
  limits: (client) => client.limits(),
  health: (client) => client.health(),
  readiness: (client) => client.readiness(),
  "leases.begin": ({ leases }) => leases.begin({}),
  "leases.commit": ({ leases }) => leases.commit(UUID),
  "leases.rollback": ({ leases }) => leases.rollback(UUID),
  "leases.get": ({ leases }) => leases.get(UUID),
  "leases.list": ({ leases }) => leases.list().all(),
  "leases.listStale": ({ leases }) => leases.listStale().all(),
  "records.find": ({ records }) => records.find({ type: "ROUTES", value: "a" }),
  "records.lookup": ({ records }) => records.lookup([{ type: "ROUTES", value: "a" }]),
  "records.list": ({ records }) => records.list({ sourceType: "RAILS_TABLE_ROUTES" }).all(),
  "records.fencingToken": ({ records }) => records.fencingToken({ type: "ROUTES", value: "a" }),
  "records.export": ({ records }) =>
    records.export({ sourceType: "RAILS_TABLE_ROUTES" })[Symbol.asyncIterator]().next(),
  "records.digests": ({ records }) => records.digests({ sourceType: "RAILS_TABLE_ROUTES", ranges: [{}] }),
  "routing.find": ({ routing }) => routing.find({ type: "ROUTES", value: "a" }),
  "routing.findMany": ({ routing }) => routing.findMany([{ type: "ROUTES", value: "a" }]),
  "routing.classify": ({ routing }) => routing.classify({ claims: [{ type: "ROUTES", value: "a" }] }),
  "routing.report": ({ routing }) => routing.report(0),
  "changes.page": ({ changes }) => changes.page(),
  "changes.follow": ({ changes }) => changes.follow().next(),
  "routing.cells": ({ routing }) => routing.cells(),
  "transfers.plan": ({ transfers }) => transfers.plan({ to: "7", scope: "1" }),
  "transfers.prepare": ({ transfers }) => transfers.prepare({ to: "7", scope: "1" }),
  "transfers.list": ({ transfers }) => transfers.list().all(),
  "transfers.get": ({ transfers }) => transfers.get(`7-${UUID}`),
  "transfers.accept": ({ transfers }) => transfers.accept(`7-${UUID}`),
  "transfers.report": ({ transfers }) => transfers.report(`7-${UUID}`, { count: 0, hash: "0".repeat(32) }),
  "transfers.cut": ({ transfers }) => transfers.cut(`7-${UUID}`),
  "transfers.abort": ({ transfers }) => transfers.abort(`7-${UUID}`, { reason: "a test" }),
  "verificationSlots.take": ({ verificationSlots }) => verificationSlots.take(UUID),
  "verificationSlots.release": ({ verificationSlots }) => verificationSlots.release(UUID),
  "cells.reportStatus": ({ cells }) => cells.reportStatus({ sdk: { name: "x", version: "1" } }),
  "cells.status": ({ cells }) => cells.status(),
  "cells.list": ({ cells }) => cells.list().all(),
  "cells.add": ({ cells }) => cells.add({ cell_id: "8", name: "eight", address: "https://eight.test" }),
  "cells.change": ({ cells }) => cells.change("8", { name: "ate" }),
  "cells.freeze": ({ cells }) => cells.freeze("8", { reason: "a test" }),
  "cells.drain": ({ cells }) => cells.drain("8", { reason: "a test" }),
  "cells.unfreeze": ({ cells }) => cells.unfreeze("8"),
  "leases.renew": ({ leases }) => leases.renew("a", "an import"),
  "keys.list": ({ keys }) => keys.list().all(),
  "keys.uses": ({ keys }) => keys.uses({ kind: "token", ids: ["a", "b"] }).all(),
  "keys.mint": ({ keys }) => keys.mint({ role: "operator" }),
  "keys.revoke": ({ keys }) => keys.revoke("key-1"),
  "parts.get": ({ parts }) => parts.get("shard-0"),
  "parts.reconcile": ({ parts }) => parts.reconcile("shard-0", { dry_run: true, reason: "a test" }),
  "parts.scrubStatus": ({ parts }) => parts.scrubStatus("shard-0"),
  "parts.scrub": ({ parts }) => parts.scrub("shard-0", { restart: true }),
  "parts.finish": ({ parts }) => parts.finish("shard-0", { reason: "a test" }),
  "audit.list": ({ audit }) => audit.list().all(),
  "identities.get": ({ identities }) => identities.get(),
  "identities.change": ({ identities }) =>
    identities.change({ version: 0, issuers: [], authorities: [], dry_run: true }),
  "identities.explain": ({ identities }) => identities.explain({ issuer: "https://a.test", subject: "b" }),
  "types.list": ({ types }) => types.list(),
  "types.get": ({ types }) => types.get(),
  "types.change": ({ types }) => {
    const none = { bucket_types: {}, subject_types: {}, source_types: {} };
    return types.change({ version: 0, types: none, dry_run: true });
  },
};

/** The methods of an object's class, without accessors. */
const methodsOf = (of: object): string[] =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(of)).filter(
    (name) => name !== "constructor" && typeof Reflect.get(of, name) === "function",
  );

/** All methods that users of a client can call. */
function surfaceOf(client: Client): string[] {
  const groups = Object.entries(client).filter(([, value]) => typeof value === "object");
  return [
    ...methodsOf(client),
    ...groups.flatMap(([group, value]) => methodsOf(value as object).map((name) => `${group}.${name}`)),
  ];
}

/** Methods that call nothing, or another method again and again. */
const inMemory = ["add", "answered", "deleted", "next", "onChange"];
const local = ["forCell", "leases.whileRenewing", ...inMemory.map((name) => `history.${name}`)];

it("calls every operation, and this test covers every method", async () => {
  const reached = new Set<string>();
  const hooks = { onRequest: ({ operation }: { operation: string }) => void reached.add(operation) };
  const { client, sent } = fakeClient([problem(403, "PERMISSION_DENIED")], { hooks });
  expect(surfaceOf(client).toSorted()).toEqual([...Object.keys(calls), ...local].toSorted());
  for (const call of Object.values(calls))
    await expect(call(client)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  expect([...reached].toSorted()).toEqual(Object.keys(operations).toSorted());
  for (const { url } of sent) expect(url).not.toMatch(/[{}]|undefined/);
});

it.each(Object.entries(calls))("%s has the method and the path of the contract", async (_, call) => {
  let asked: string | undefined;
  const hooks = { onRequest: ({ operation }: { operation: string }) => void (asked = operation) };
  const { client, sent } = fakeClient([problem(403, "PERMISSION_DENIED")], { hooks });
  await call(client).catch(() => {});
  const { method, path } = operations[asked as keyof typeof operations];
  const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.method).toBe(method);
  expect(new URL(sent[0]?.url ?? "").pathname).toMatch(pattern);
});
