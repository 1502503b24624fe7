/** Who may call what, and how requests are refused. */
import { SkipError, type Check, type CheckContext } from "../check-context.ts";
import { describe, expectEqual, expectRefusal, expectStatus, expectThat } from "../nonconformity.ts";

/** The limits of the deployment by their names. */
async function limitsOf(context: CheckContext): Promise<Map<string, number>> {
  const received = await context.send("GET", "/v1/limits");
  expectStatus(received, 200);
  const { limits = [] } = received.json as { limits?: { name: string; value: number }[] };
  return new Map(limits.map(({ name, value }) => [name, value]));
}

/** A larger request would be a load. */
const MOST_ITEMS = 2_000;

function limitIn(limits: ReadonlyMap<string, number>, name: string): number {
  const limit = limits.get(name);
  expectThat(limit !== undefined, `/v1/limits has no ${name}`);
  if (limit > MOST_ITEMS) throw new SkipError(`${name} is above ${MOST_ITEMS}`);
  return limit;
}

/** An id that no cell of a deployment has. */
const NO_CELL = "9223372036854775807";

export const requestChecks: readonly Check[] = [
  {
    id: "caller/no-key",
    rules: ["API"],
    title: "A call without a valid key is refused with 401, whatever it asks for.",
    run: async (context) => {
      const uuid = context.newUuid();
      const calls = [
        ["GET", `/v1/cells/${context.cellId()}/leases`],
        ["GET", context.leasePath(uuid)],
        ["POST", `${context.leasePath(uuid)}/commit`],
        ["GET", `/v1/records/${context.deployment.types.bucket}/${context.name()}`],
        ["GET", "/v1/limits"],
        ["GET", "/v1/admin/cells"],
      ] as const;
      for (const [method, path] of calls) {
        for (const authorization of [undefined, "Bearer", "Bearer lhk_x.y", "Basic YTpi"]) {
          const headers = authorization === undefined ? {} : { authorization };
          const received = await context.send(method, path, { who: "nobody", headers });
          expectRefusal(received, 401, { code: "UNAUTHENTICATED" });
          expectThat(
            received.header("www-authenticate") !== null,
            `${describe(received)}; it must have WWW-Authenticate`,
          );
        }
      }
    },
  },
  {
    id: "caller/other-cell",
    rules: ["API"],
    title: "The key of a cell is refused with 403 for every other cell, and for what operators do.",
    run: async (context) => {
      const uuid = context.newUuid();
      for (const cell of [NO_CELL, context.deployment.otherCell ?? NO_CELL]) {
        const leases = `/v1/cells/${cell}/leases`;
        const batch = { creates: [context.op(context.name())] };
        for (const [method, path, body] of [
          ["GET", leases],
          ["PUT", `${leases}/${uuid}`, batch],
          ["POST", `${leases}/${uuid}/commit`],
          ["POST", `${leases}/${uuid}/rollback`],
          ["GET", `/v1/cells/${cell}/records?source_type=${context.deployment.types.source}`],
        ] as const) {
          const received = await context.send(method, path, body === undefined ? {} : { body });
          expectRefusal(received, 403, { code: "PERMISSION_DENIED" });
        }
      }
      for (const path of ["/v1/admin/cells", "/v1/admin/keys", "/v1/leases/stale"])
        expectRefusal(await context.send("GET", path), 403, { code: "PERMISSION_DENIED" });
    },
  },
  {
    id: "caller/router",
    rules: ["API"],
    title: "The key of a router begins and decides nothing.",
    needs: ["router"],
    run: async (context) => {
      const name = context.name();
      const lease = await context.granted({ creates: [context.op(name)] });
      const path = context.leasePath(lease.uuid);
      const body = { creates: [context.op(context.name())] };
      const begun = await context.send("PUT", context.leasePath(context.newUuid()), { who: "router", body });
      expectRefusal(begun, 403, { code: "PERMISSION_DENIED" });
      for (const decision of ["commit", "rollback"] as const)
        expectRefusal(await context.send("POST", `${path}/${decision}`, { who: "router" }), 403, {
          code: "PERMISSION_DENIED",
        });
      await context.rollBack(lease);
    },
  },
  {
    id: "request/bodies",
    rules: ["B1", "API"],
    title: "A body that is no JSON, has a key twice or is of another media type is refused.",
    run: async (context) => {
      const uuid = context.newUuid();
      const path = context.leasePath(uuid);
      const text = JSON.stringify({ creates: [context.op(context.name())] });
      for (const raw of ["", "{", `${text}x`, "[]", "null", `{"creates":[],${text.slice(1)}`]) {
        const received = await context.send("PUT", path, { raw });
        expectThat(
          received.status === 400,
          `the body ${raw.slice(0, 20)}: ${describe(received)}; expected 400`,
        );
        expectRefusal(received, 400, { code: "INVALID_ARGUMENT" });
      }
      const headers = { "content-type": "text/plain" };
      expectRefusal(await context.send("PUT", path, { raw: text, headers }), 415, {
        code: "INVALID_ARGUMENT",
      });
      expectStatus(await context.send("GET", path), 404);
    },
  },
  {
    id: "request/lease-ids",
    rules: ["API"],
    title: "The id of a lease must be a UUID of versions 1 to 8.",
    run: async (context) => {
      const body = { creates: [context.op(context.name())] };
      for (const uuid of [
        "x",
        "0191e1a0-0000-9000-8000-000000000001",
        "0191e1a0-0000-7000-c000-000000000001",
      ])
        expectRefusal(await context.send("PUT", context.leasePath(uuid), { body }), 400, {
          code: "INVALID_ARGUMENT",
        });
    },
  },
  {
    id: "request/problems",
    rules: ["API"],
    title: "A refusal is a problem that has its status, code, and the id of the request.",
    run: async (context) => {
      const ids = new Set<string>();
      for (const [method, path, status] of [
        ["GET", "/v1/no-such-route", 404],
        ["DELETE", "/v1/limits", 405],
        ["GET", context.leasePath(context.newUuid()), 404],
        ["GET", `/v1/cells/${context.cellId()}/leases?page_size=x`, 400],
      ] as const) {
        const received = await context.send(method, path);
        expectStatus(received, status);
        const problem = received.json as Record<string, unknown>;
        for (const field of ["type", "title", "detail", "code", "request_id"])
          expectThat(
            typeof problem?.[field] === "string",
            `${describe(received)}; it must have \`${field}\``,
          );
        expectEqual(problem["status"], status, "`status`");
        expectEqual(typeof problem["retryable"], "boolean", "the type of `retryable`");
        expectEqual(problem["request_id"], received.header("x-request-id"), "`request_id`");
        ids.add(String(received.header("x-request-id")));
      }
      expectEqual(ids.size, 4, "the number of different ids of four requests");
    },
  },
  {
    id: "request/page-tokens",
    rules: ["API"],
    title: "A page token that was altered, or that is of another call, is refused.",
    run: async (context) => {
      const leases = [];
      for (const name of context.names(2))
        leases.push(await context.granted({ creates: [context.op(name)] }));
      const path = `/v1/cells/${context.cellId()}/leases`;
      const page = await context.send("GET", `${path}?page_size=1`);
      expectStatus(page, 200);
      const { next_page_token: token } = page.json as { next_page_token: string };
      expectThat(token !== "", `${describe(page)}; there are more leases`);
      const altered = `${token.slice(0, -4)}${token.endsWith("AAAA") ? "BBBB" : "AAAA"}`;
      const records = `/v1/cells/${context.cellId()}/records?source_type=${context.deployment.types.source}`;
      for (const wrong of [
        `${path}?page_size=1&page_token=${encodeURIComponent(altered)}`,
        `${path}?page_size=1&page_token=x`,
        `${records}&page_token=${encodeURIComponent(token)}`,
      ])
        expectRefusal(await context.send("GET", wrong), 400, {
          code: "INVALID_ARGUMENT",
          field: "page_token",
        });
      for (const lease of leases) await context.rollBack(lease);
    },
  },
  {
    id: "limits/enforced",
    rules: ["M6"],
    title: "Limits are listed, and what is above them is refused with the first item that is too many.",
    run: async (context) => {
      const limits = await limitsOf(context);
      const ops = limitIn(limits, "batch_ops");
      const names = Array.from({ length: ops + 1 }, (_, index) => `${context.prefix}many-${index}`);
      const { uuid, received } = await context.begin({ creates: names.map((name) => context.op(name)) });
      expectRefusal(received, 400, { code: "INVALID_ARGUMENT", field: `creates[${ops}]` });
      expectStatus(await context.send("GET", context.leasePath(uuid)), 404);
      const most = limitIn(limits, "lookup_buckets");
      const buckets = Array.from({ length: most + 1 }, (_, index) =>
        context.bucket(`${context.prefix}${index}`),
      );
      const looked = await context.send("POST", "/v1/records/lookup", { body: { buckets } });
      expectRefusal(looked, 400, { code: "INVALID_ARGUMENT", field: `buckets[${most}]` });
      const bytes = limitIn(limits, "value_bytes");
      const long = await context.begin({ creates: [context.op("a".repeat(bytes + 1))] });
      expectRefusal(long.received, 400, { code: "INVALID_ARGUMENT", field: "creates[0].bucket.value" });
    },
  },
];
