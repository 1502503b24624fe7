/** Cells, and the cell of a request, over the wire. */
import { create, ScalarType } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { v4 as newUuid } from "uuid";
import { beforeAll, describe, expect, test } from "vitest";
import {
  CellService,
  ClaimSchema,
  ClaimService,
  ClassifyAction,
  ClassifyService,
  ClassifyType,
  HealthService,
  type Claim,
} from "../../../src/coordinator/wire/protobuf.ts";
import type { MintedKey } from "../../suites/conformance/client.ts";
import { claim, freshName } from "../../suites/conformance/leases.ts";
import { begin, failure, record } from "../../suites/wire/messages.ts";
import { Api, env, startDeployment } from "../../support/workerd/api.ts";
import { watchedNamespace } from "../../support/workerd/counting.ts";
import { clientFor, protocols } from "./clients.ts";

let api: Api;
const owned: string[] = [];

beforeAll(async () => {
  api = await startDeployment("1", "2");
  for (const cell of ["1", "2"]) {
    const value = freshName();
    const lease = `/v1/cells/${cell}/leases/${newUuid()}`;
    const key = `cell ${cell}` as const;
    await api.json(201, "PUT", lease, { key, body: { creates: [claim(value)] } });
    await api.json(200, "POST", `${lease}/commit`, { key });
    owned.push(value);
  }
});

const codeOf = (call: Promise<unknown>): Promise<Code> =>
  call.then(
    () => 0 as Code,
    (error: unknown) => ConnectError.from(error).code,
  );
const route = (value: string) => ({ claim: { case: "route" as const, value } });
const infoOf = (id: number) => ({
  id: BigInt(id),
  address: `https://cell-${id}.test`,
  sessionPrefix: `cell-${id}`,
});

describe.each(protocols)("%s", (protocol) => {
  test("the first claim that exists decides, and the answer has it as it was sent", async () => {
    const client = clientFor(ClassifyService, api, protocol, "router");
    const [one = "", two = ""] = owned;
    for (const [claims, cell, value] of [
      [[freshName(), two.toUpperCase(), one], 2, two.toUpperCase()],
      [[one, two], 1, one],
    ] as const)
      expect(await client.classify({ claims: claims.map(route) })).toMatchObject({
        action: ClassifyAction.PROXY,
        proxy: { address: `cell-${cell}.test` },
        matchedClaim: route(value),
      });
    // Older generations send one claim.
    expect(await client.classify({ claim: route(two) })).toMatchObject({
      proxy: { address: "cell-2.test" },
      matchedClaim: route(two),
    });
    expect(await codeOf(client.classify({ claims: [route(freshName())] }))).toBe(Code.NotFound);
  });

  test("[W11] the first domain of Pages that exists decides, and other claims are refused", async () => {
    const name = freshName();
    const cell = clientFor(ClaimService, api, "Connect", "cell 2");
    const domain = { claim: { case: "pagesDomain" as const, value: `www.${name}.example` } };
    const label = { claim: { case: "pagesUniqueDomain" as const, value: name } };
    const createRecords = [domain, label].map((each) => ({ ...record("", 7), claim: each }));
    const { leaseUuid } = await cell.beginUpdate(begin(createRecords, [], 2n));
    await cell.commitUpdate({ cellId: 2n, leaseUuid });

    const client = clientFor(ClassifyService, api, protocol, "router");
    const free = { claim: { case: "pagesDomain" as const, value: `${name}.example` } };
    const typed = { claim: { case: "pagesDomain" as const, value: `WWW.${name}.Example` } };
    for (const [claims, matchedClaim] of [
      [[free, typed, label], typed],
      [[label, domain], label],
    ] as const)
      expect(await client.classifyPages({ claims: [...claims] })).toMatchObject({
        action: ClassifyAction.PROXY,
        pagesAddress: "cell-2.test",
        matchedClaim,
      });
    expect(await codeOf(client.classifyPages({ claims: [free] }))).toBe(Code.NotFound);
    const refused = await failure(client.classifyPages({ claims: [domain, route(owned[0] ?? "")] }));
    expect(refused.code).toBe(Code.InvalidArgument);
    expect(refused.rawMessage).toContain("`claims[1]` must be a `pages_domain` or a `pages_unique_domain`");
    expect((await failure(client.classifyPages({}))).rawMessage).toContain("`claims` must have at least one");
  });

  test("[W12] GitLab's probes answer whoever has a key", async () => {
    for (const key of ["cell 1", "router", "operator"] as const) {
      const client = clientFor(HealthService, api, protocol, key);
      expect(await client.readinessProbe({})).toMatchObject({});
      expect(await client.livenessProbe({})).toMatchObject({});
    }
    const nobody = clientFor(HealthService, api, protocol, "");
    expect(await codeOf(nobody.livenessProbe({}))).toBe(Code.Unauthenticated);
  });

  test("both services list the cells, and a cell is found by its id", async () => {
    for (const key of ["cell 1", "router", "operator"] as const) {
      const cells = [infoOf(1), infoOf(2)];
      expect(await clientFor(ClassifyService, api, protocol, key).getCells({})).toMatchObject({ cells });
      expect(await clientFor(ClaimService, api, protocol, key).getCells({})).toMatchObject({ cells });
      const client = clientFor(CellService, api, protocol, key);
      expect(await client.getCell({ cellId: 2n })).toMatchObject({ cellInfo: infoOf(2) });
      expect(await codeOf(client.getCell({ cellId: 3n }))).toBe(Code.NotFound);
    }
    expect(await codeOf(clientFor(CellService, api, protocol, "").getCell({ cellId: 1n }))).toBe(
      Code.Unauthenticated,
    );
  });
});

test("[W10] every type of GitLab's is claimed and classified, over the wire and over HTTP", async () => {
  const claims = ClaimSchema.fields.map((field) => {
    const isWhole = field.scalar === ScalarType.INT64;
    const domain = field.name.endsWith("email") ? "@example.com" : "";
    return { field, value: isWhole ? BigInt(`9${Date.now()}`) : `Name-${Date.now()}${domain}` };
  });
  const claimOf = ({ field, value }: (typeof claims)[number]) =>
    create(ClaimSchema, { claim: { case: field.localName, value } as Claim["claim"] });
  expect(claims).toHaveLength(20);
  const cell = clientFor(ClaimService, api);
  const createRecords = claims.map((claimed) => ({ ...record("", 7), claim: claimOf(claimed) }));
  const { leaseUuid } = await cell.beginUpdate(begin(createRecords));
  await cell.commitUpdate({ cellId: 1n, leaseUuid });
  const router = clientFor(ClassifyService, api, "Connect", "router");
  for (const claimed of claims) {
    const sent = claimOf(claimed);
    expect(await router.classify({ claims: [sent] })).toMatchObject({
      proxy: { address: "cell-1.test" },
      matchedClaim: sent,
    });
    for (const name of [claimed.field.name, claimed.field.jsonName]) {
      const body = { claims: [{ [name]: String(claimed.value) }] };
      const { proxy } = await api.json<{ proxy: unknown }>(200, "POST", "/v1/classify", {
        key: "router",
        body,
      });
      expect(proxy, name).toEqual({ address: "cell-1.test" });
    }
  }
});

test("a type finds a cell without claims", async () => {
  const client = clientFor(ClassifyService, api, "Connect", "router");
  for (const [type, value, cell] of [
    [ClassifyType.FIRST_CELL, "", 1],
    [ClassifyType.SESSION_PREFIX, "cell-2", 2],
    [ClassifyType.CELL_ID, "2", 2],
  ] as const) {
    const answer = await client.classify({ type, value });
    expect(answer.proxy?.address).toBe(`cell-${cell}.test`);
    expect(answer.matchedClaim).toBeUndefined();
  }
  expect(await codeOf(client.classify({ type: ClassifyType.CELL_ID, value: "77" }))).toBe(Code.NotFound);
  expect(await codeOf(client.classify({}))).toBe(Code.InvalidArgument);
  expect(await codeOf(client.classify({ claims: [{ claim: { case: undefined } }] }))).toBe(
    Code.InvalidArgument,
  );
  const many = Array.from({ length: 101 }, () => route("x"));
  expect(await codeOf(client.classify({ claims: many }))).toBe(Code.InvalidArgument);
});

test("a cell classifies too, as over HTTP, and a scraper does not", async () => {
  const client = clientFor(ClassifyService, api, "Connect", "cell 1");
  const [, two = ""] = owned;
  const answer = { proxy: { address: "cell-2.test" }, matchedClaim: route(two) };
  expect(await client.classify({ claims: [route(two)] })).toMatchObject(answer);
  const { key } = await api.json<{ key: MintedKey }>(201, "POST", "/v1/admin/keys", {
    body: { role: "scraper", note: "a test", reason: "a test" },
  });
  const scraper = clientFor(ClassifyService, api, "Connect", key);
  expect(await codeOf(scraper.classify({ claims: [route(two)] }))).toBe(Code.PermissionDenied);
});

test("[W12] while a shard does not answer, only the liveness probe succeeds", async () => {
  const silent = new Api({
    CLAIM_SHARD: watchedNamespace("CLAIM_SHARD", env.CLAIM_SHARD, () => Promise.reject(new Error("silent"))),
  });
  const client = clientFor(HealthService, silent);
  expect(await codeOf(client.readinessProbe({}))).toBe(Code.Unavailable);
  expect(await client.livenessProbe({})).toMatchObject({});
});
