import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ForwardedEvent } from "../../../../src/users/router/hooks.ts";
import type { ProxyFailure } from "../../../../src/users/router/proxy/failure.ts";
import { createProxy } from "../../../../src/users/router/proxy/proxy.ts";
import { found, prefixes, rulesOf, ScriptedRoutes, serve, startCell, stopServers } from "./fixture.ts";

afterEach(async () => {
  vi.restoreAllMocks();
  await stopServers();
});

const MIB = 2 ** 20;

/** No other timer has this length. */
const DEADLINE_MS = 123_456;

/** Watches the timers of `DEADLINE_MS`, so that no test waits for one. */
function watchDeadlines(): { endLast: () => void; areCleared: () => boolean } {
  const set = vi.spyOn(globalThis, "setTimeout");
  const cleared = vi.spyOn(globalThis, "clearTimeout");
  const isDeadline = ([, delayMs]: Parameters<typeof setTimeout>): boolean => delayMs === DEADLINE_MS;
  return {
    endLast: () => set.mock.calls.findLast(isDeadline)?.[0](),
    areCleared: () => {
      const timers = set.mock.results.filter((_, n) => isDeadline(set.mock.calls[n] ?? [() => {}]));
      const ended = new Set<unknown>(cleared.mock.calls.map(([timer]) => timer));
      return timers.length > 0 && timers.every(({ value }) => ended.has(value));
    },
  };
}

describe("what the cell gets", () => {
  const echoed = async (given: Record<string, string>, options: object = {}, context?: object) => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (request, response) => {
      response.end(JSON.stringify({ url: request.url, headers: request.headers }));
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes, ...options }, context);
    // In the default mode, a conditional request gets headers of its own.
    const answer = await fetch(`${url}/ada/x?q=a%20b`, { headers: given, cache: "force-cache" });
    const body = (await answer.json()) as { url: string; headers: Record<string, string> };
    return { ...body, router: new URL(url).host };
  };

  test("the path and the query are the client's, and the route is in headers", async () => {
    const { url, headers, router } = await echoed({ accept: "text/html" });
    expect(url).toBe("/ada/x?q=a%20b");
    expect(headers).toMatchObject({
      accept: "text/html",
      "leasehold-cell": "7",
      "leasehold-epoch": "12",
      "leasehold-age-ms": "40",
      "leasehold-hops": "0",
      "x-forwarded-host": router,
      "x-forwarded-proto": "http",
      "x-gitlab-http-router-rule-action": "classify",
      "x-gitlab-http-router-rule-type": "ROUTES",
    });
    expect(headers["host"]).not.toBe(router);
    expect(headers).not.toHaveProperty("leasehold-stale");
    expect(headers).not.toHaveProperty("x-forwarded-for");
  });

  test("a conditional request stays one that the cell can answer with 304", async () => {
    for (const [name, value] of [
      ["if-none-match", '"1"'],
      ["if-modified-since", "Sun, 29 Nov 2026 00:00:00 GMT"],
      ["if-match", '"1"'],
      ["if-range", '"1"'],
    ] as const) {
      const { headers } = await echoed({ [name]: value });
      expect(headers).toMatchObject({ [name]: value });
      expect(headers).not.toHaveProperty("cache-control");
      expect(headers).not.toHaveProperty("pragma");
    }
    const { headers } = await echoed({ "if-none-match": '"1"', "cache-control": "no-cache" });
    expect(headers["cache-control"]).toBe("no-cache");
  });

  test("case 19: a client's headers of the router are removed, and those of the connection", async () => {
    const { headers } = await echoed({
      "leasehold-cell": "9",
      "leasehold-hops": "1",
      "leasehold-anything": "x",
      "x-forwarded-for": "203.0.113.9",
      "x-forwarded-host": "evil.example.com",
      "x-forwarded-port": "1",
      "x-real-ip": "203.0.113.9",
      forwarded: "for=203.0.113.9",
      "x-gitlab-http-router-rule-type": "SESSION_PREFIX",
      "x-gitlab-http-router-anything": "x",
      "proxy-authorization": "Basic eDp5",
      te: "gzip",
      "client-ip": "203.0.113.9",
      "true-client-ip": "203.0.113.9",
      "x-client-ip": "203.0.113.9",
      // CGI, WSGI and Rack read these as if they had hyphens.
      x_forwarded_for: "203.0.113.9",
      leasehold_cell: "9",
      x_real_ip: "203.0.113.9",
      "x-own": "kept",
      x_own: "kept",
    });
    expect(headers).toMatchObject({ "leasehold-cell": "7", "leasehold-hops": "0", "x-own": "kept" });
    expect(headers["x_own"]).toBe("kept");
    expect(headers["x-forwarded-host"]).not.toContain("evil");
    for (const name of [
      "leasehold-anything",
      "x-forwarded-for",
      "x-forwarded-port",
      "x-real-ip",
      "client-ip",
      "true-client-ip",
      "x-client-ip",
      "x_forwarded_for",
      "leasehold_cell",
      "x_real_ip",
      "forwarded",
      "x-gitlab-http-router-anything",
      "proxy-authorization",
      "te",
    ])
      expect(headers).not.toHaveProperty(name);
  });

  test("the address of the client is from the caller, and added to what a trusted proxy says", async () => {
    const given = {
      "x-forwarded-for": "198.51.100.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "www",
    };
    const context = { clientAddress: "203.0.113.7" };
    expect((await echoed(given, {}, context)).headers).toMatchObject({
      "x-forwarded-for": "203.0.113.7",
      "x-forwarded-proto": "http",
    });
    expect((await echoed(given, { trustForwarded: true }, context)).headers).toMatchObject({
      "x-forwarded-for": "198.51.100.1, 203.0.113.7",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "www",
    });
  });

  test("headers that `Connection` lists are removed, but not those that the router sets", async () => {
    const routes = new ScriptedRoutes();
    const cell = { id: "7", address: "http://127.0.0.1:1" };
    routes.answers.set("ada", found(cell));
    const sent: Headers[] = [];
    const proxy = createProxy({
      routes,
      ruleset: prefixes,
      allowLocalHttp: true,
      fetch: async (_, init) => {
        sent.push(new Headers(init?.headers));
        return new Response("fine");
      },
    });
    await proxy(
      new Request("http://router/ada", {
        headers: { connection: "x-one, X-Forwarded-Host,no token", "x-one": "1", "x-two": "2" },
      }),
    );
    expect(sent).toHaveLength(1);
    expect(Object.fromEntries(sent[0] ?? [])).toMatchObject({ "x-two": "2", "x-forwarded-host": "router" });
    expect(sent[0]?.has("x-one")).toBe(false);
    expect(sent[0]?.has("connection")).toBe(false);
  });

  test("only encodings that the runtime decodes are asked for", async () => {
    const { headers } = await echoed({ "accept-encoding": "zstd, x-unknown" });
    expect(headers["accept-encoding"]).toContain("gzip");
    expect(headers["accept-encoding"]).not.toMatch(/zstd|unknown/);
  });

  test("the cookies of the router stay with it, and their positions bound the lookup", async () => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (request, response) => {
      response.end(request.headers.cookie ?? "none");
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    const cookieOf = async (cookie: string): Promise<string> =>
      await (await fetch(`${url}/ada`, { headers: { cookie } })).text();
    expect(await cookieOf("a=1; Leasehold-Position=3:4700,5:88; b=2; Leasehold-Redirected=1")).toBe(
      "a=1; b=2",
    );
    expect(await cookieOf("Leasehold-Position=3:4700")).toBe("none");
    expect(await cookieOf("Leasehold-Position=garbage")).toBe("none");
    expect(routes.minPositions).toEqual([
      [
        [3, 4_700],
        [5, 88],
      ],
      [[3, 4_700]],
      [],
    ]);
  });

  test("a path that begins with two slashes names no other host", async () => {
    const routes = new ScriptedRoutes();
    routes.answers.set("evil.example.com/x", found({ id: "7", address: "https://cell-7.example.com" }));
    const urls: string[] = [];
    const proxy = createProxy({
      routes,
      ruleset: prefixes,
      fetch: async (url) => {
        urls.push(url as string);
        return new Response("fine");
      },
    });
    await proxy(new Request("http://router//evil.example.com/x?y"));
    expect(urls).toEqual(["https://cell-7.example.com//evil.example.com/x?y"]);
  });

  test("a route from an outage is marked", async () => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (request, response) => {
      response.end(String(request.headers["leasehold-stale"]));
    });
    routes.answers.set("ada", found(cell, { isStale: true, ageMs: 599_000.4 }));
    const url = await serve({ routes, ruleset: prefixes, showRoute: true });
    const answer = await fetch(`${url}/ada`);
    expect(await answer.text()).toBe("true");
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "leasehold-stale": "true",
      "leasehold-age-ms": "599000",
    });
  });
});

describe("what the client gets", () => {
  test("status, headers and redirects are those of the cell, without its `Leasehold-*` headers", async () => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (_, response) => {
      response.writeHead(303, "Elsewhere", {
        location: "https://www.example.com/x",
        "set-cookie": ["a=1", "b=2"],
        "leasehold-cell": "9",
        "keep-alive": "timeout=5",
      });
      response.end("see there");
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    const answer = await fetch(`${url}/ada`, { redirect: "manual" });
    expect(answer.status).toBe(303);
    expect(answer.headers.get("location")).toBe("https://www.example.com/x");
    expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(answer.headers.has("leasehold-cell")).toBe(false);
    expect(await answer.text()).toBe("see there");
  });

  test("an answer without a type gets none, whatever its length and status", async () => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (request, response) => {
      response.statusCode = Number(request.headers["x-status"]);
      // Its length is known before the answer is sent on, or not.
      response.write("<p>");
      setTimeout(() => response.end("hello"), request.headers["x-slow"] === undefined ? 0 : 50);
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    for (const status of [200, 302, 404, 500])
      for (const more of [{}, { "x-slow": "1" }]) {
        const headers = { "x-status": String(status), ...more } as Record<string, string>;
        const answer = await fetch(`${url}/ada`, { headers, redirect: "manual" });
        expect([answer.status, answer.headers.get("content-type")]).toEqual([status, null]);
        expect(await answer.text()).toBe("<p>hello");
      }
  });

  test("an answer that a cell or a client breaks off is not logged on Node", async () => {
    const logged = [vi.spyOn(console, "error"), vi.spyOn(console, "info")];
    const routes = new ScriptedRoutes();
    const closed = Promise.withResolvers<void>();
    const cell = await startCell("7", (request, response) => {
      response.write("half");
      if (request.url === "/ada/cell") setTimeout(() => response.destroy(), 20);
      else response.once("close", closed.resolve);
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    await expect(fetch(`${url}/ada/cell`).then((answer) => answer.text())).rejects.toThrow("terminated");
    const leaving = new AbortController();
    const answer = await fetch(`${url}/ada/client`, { signal: leaving.signal });
    leaving.abort();
    await expect(answer.text()).rejects.toThrow();
    await closed.promise;
    for (const log of logged) expect(log).not.toHaveBeenCalled();
  });

  test("an answer that needs no change is not copied", async () => {
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", found({ id: "7", address: "https://cell-7.example.com" }));
    const given = new Response("hello", { headers: { "x-of-cell": "1" } });
    const proxy = createProxy({ routes, ruleset: prefixes, fetch: async () => given });
    expect(await proxy(new Request("http://router/ada"))).toBe(given);
  });

  test("answers without a body, and to HEAD, have none", async () => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (request, response) => {
      response.writeHead(Number(request.headers["x-status"]), { etag: '"1"' }).end();
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    for (const status of [200, 204, 304])
      for (const method of ["GET", "HEAD"]) {
        const answer = await fetch(`${url}/ada`, { method, headers: { "x-status": String(status) } });
        expect([answer.status, answer.headers.get("etag"), await answer.text()]).toEqual([status, '"1"', ""]);
      }
  });

  test("a compressed answer that the runtime has decoded does not say that it is compressed", async () => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (_, response) => {
      const body = gzipSync("long ".repeat(1_000));
      response.writeHead(200, { "content-encoding": "gzip", "content-length": body.length }).end(body);
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    expect(await (await fetch(`${url}/ada`)).text()).toBe("long ".repeat(1_000));
  });
});

describe("streams", () => {
  test("case 20: a large upload reaches the cell with its length, in little memory", async () => {
    const routes = new ScriptedRoutes();
    const total = 100 * MIB;
    let received = 0;
    let furthestAhead = 0;
    let sent = 0;
    const cell = await startCell("7", (request, response) => {
      request.on("data", (chunk: Buffer) => {
        received += chunk.length;
        furthestAhead = Math.max(furthestAhead, sent - received);
      });
      request.on("end", () => response.end(`${received} of ${request.headers["content-length"]}`));
    });
    routes.answers.set("ada", found(cell));
    const proxy = createProxy({ routes, ruleset: prefixes, allowLocalHttp: true });
    const chunk = new Uint8Array(MIB / 4);
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          controller.enqueue(chunk);
          sent += chunk.length;
          if (sent === total) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const init: object = {
      method: "PUT",
      body,
      duplex: "half",
      headers: { "content-length": String(total) },
    };
    const answer = await proxy(new Request("http://router/ada", init));
    expect(await answer.text()).toBe(`${total} of ${total}`);
    // Sockets buffer a few MiB. A proxy that collects the body would be ahead by all of it.
    expect(furthestAhead).toBeLessThan(20 * MIB);
  });

  test("case 20: server-sent events arrive one by one, and end when the client leaves", async () => {
    const routes = new ScriptedRoutes();
    const left = Promise.withResolvers<void>();
    const next = Promise.withResolvers<void>();
    const cell = await startCell("7", (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
      void next.promise.then(() => response.write("data: 2\n\n"));
      response.once("close", () => left.resolve());
    });
    routes.answers.set("ada", found(cell));
    const deadlines = watchDeadlines();
    const url = await serve({ routes, ruleset: prefixes, answerTimeoutMs: DEADLINE_MS });
    const client = new AbortController();
    const answer = await fetch(`${url}/ada`, { signal: client.signal });
    const reader = (answer.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    expect((await reader.read()).value).toBe("data: 1\n\n");
    // An answer that has begun may take longer than the timeout.
    expect(deadlines.areCleared()).toBe(true);
    next.resolve();
    expect((await reader.read()).value).toBe("data: 2\n\n");
    client.abort();
    await left.promise;
  });

  test("case 20: a client that leaves before the answer aborts the request to the cell", async () => {
    const routes = new ScriptedRoutes();
    const asked = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const cell = await startCell("7", (_, response) => {
      asked.resolve();
      response.once("close", () => left.resolve());
    });
    routes.answers.set("ada", found(cell));
    const failures: ProxyFailure[] = [];
    const onProxyFailure = (failure: ProxyFailure): void => void failures.push(failure);
    const url = await serve({ routes, ruleset: prefixes, hooks: { onProxyFailure } });
    const client = new AbortController();
    const answer = fetch(`${url}/ada`, { signal: client.signal });
    await asked.promise;
    client.abort();
    await expect(answer).rejects.toThrow();
    await left.promise;
    await expect.poll(() => failures.map(({ kind }) => kind)).toEqual(["client_gone"]);
  });

  test("a client that leaves in the middle of its upload ends it at the cell", async () => {
    const routes = new ScriptedRoutes();
    const left = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const cell = await startCell("7", (request) => {
      request.once("data", () => arrived.resolve());
      request.once("error", () => left.resolve());
    });
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    const client = httpRequest(`${url}/ada`, { method: "PUT", headers: { "content-length": 1_000 } });
    client.on("error", () => {});
    client.write("half");
    await arrived.promise;
    client.destroy();
    await left.promise;
  });

  test.each([413, 302])("an early %i reaches a client that still sends, after its body", async (status) => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (_, response) => void response.writeHead(status).end("early"));
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    const total = 50 * MIB;
    const client = httpRequest(`${url}/ada`, { method: "PUT", headers: { "content-length": total } });
    const answered = once(client, "response");
    const chunk = Buffer.alloc(MIB);
    for (let sent = 0; sent < total; sent += chunk.length)
      if (!client.write(chunk)) await once(client, "drain");
    client.end();
    const [answer] = (await answered) as [IncomingMessage];
    expect(answer.statusCode).toBe(status);
    expect(Buffer.concat(await answer.toArray()).toString()).toBe("early");
  });
});

describe("failures", () => {
  interface Failed {
    status: number;
    headers: Headers;
    body: Record<string, unknown>;
    failures: ProxyFailure[];
  }
  const failing = async (
    routes: ScriptedRoutes,
    options: object = {},
    init: RequestInit = {},
    path = "/ada",
  ): Promise<Failed> => {
    const failures: ProxyFailure[] = [];
    const hooks = { onProxyFailure: (failure: ProxyFailure) => void failures.push(failure) };
    const url = await serve({ routes, ruleset: prefixes, hooks, ...options });
    const { status, headers, ...answer } = await fetch(`${url}${path}`, init).then(async (given) => ({
      status: given.status,
      headers: given.headers,
      body: (await given.json()) as Record<string, unknown>,
    }));
    return { status, headers, ...answer, failures };
  };

  /** A request for a name that exists, with a body that somebody else reads. */
  const lockedUpload = async (): Promise<Pick<Failed, "status" | "failures">> => {
    const failures: ProxyFailure[] = [];
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", found({ id: "7", address: "https://cell-7.example.com" }));
    const onProxyFailure = (failure: ProxyFailure): void => void failures.push(failure);
    const proxy = createProxy({ routes, ruleset: prefixes, hooks: { onProxyFailure } });
    const request = new Request("http://router/ada", { method: "POST", body: "x" });
    request.body?.getReader();
    return { status: (await proxy(request)).status, failures };
  };

  test("no cell has the name: 404, never another cell", async () => {
    const { status, headers, body, failures } = await failing(new ScriptedRoutes());
    expect({ status, reason: body["reason"] }).toEqual({ status: 404, reason: "NO_CELL" });
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(failures).toMatchObject([{ kind: "no_cell", rule: "paths", cell: null }]);
    expect((await failing(new ScriptedRoutes(), {}, {}, "/")).failures).toMatchObject([
      { kind: "no_cell", rule: null },
    ]);
  });

  test("a lookup that is not possible now: 503 with the time to retry", async () => {
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", {
      kind: "unavailable",
      detail: "The coordinator is down.",
      retryAfterMs: 2_300,
    });
    const { status, headers, body, failures } = await failing(routes);
    expect([status, headers.get("retry-after")]).toEqual([503, "3"]);
    // What happened inside is only for the hook.
    expect(body).toEqual({
      type: "about:blank",
      title: "The cell cannot be looked up now",
      status: 503,
      reason: "UNAVAILABLE",
    });
    expect(failures).toMatchObject([
      { kind: "unavailable", rule: "paths", detail: "The coordinator is down." },
    ]);
  });

  test("a type that is not declared: 500, and the hook says which rule", async () => {
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", { kind: "invalid", field: "bucket_type", detail: "ROUTES is not declared." });
    const { status, failures } = await failing(routes);
    expect(status).toBe(500);
    expect(failures).toMatchObject([{ kind: "misconfigured", rule: "paths" }]);
  });

  test.each([
    "http://cell-7.example.com",
    "https://cell-7.example.com/app",
    "https://user:pass@cell-7.example.com",
    "https://cell-7.example.com?x",
    "ftp://cell-7.example.com",
    "cell-7.example.com",
    "",
  ])("case 21: the address `%s` is refused", async (address) => {
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", found({ id: "7", address }));
    let sent = 0;
    const fetching = async (): Promise<Response> => ((sent += 1), new Response("reached"));
    const { status, failures } = await failing(routes, { fetch: fetching });
    expect([status, sent]).toEqual([502, 0]);
    expect(failures).toMatchObject([{ kind: "unusable_address", cell: "7" }]);
  });

  test.each(["https://Cell-7.example.com", "https://cell-7.example.com:443", "https://cell-7.example.com/"])(
    "the address `%s` is used as an origin",
    async (address) => {
      const routes = new ScriptedRoutes();
      routes.answers.set("ada", found({ id: "7", address }));
      const urls: unknown[] = [];
      const fetching: typeof fetch = async (url) => (urls.push(url), new Response("reached"));
      const proxy = createProxy({ routes, ruleset: prefixes, fetch: fetching });
      expect((await proxy(new Request("http://router/ada"))).status).toBe(200);
      expect(urls).toEqual(["https://cell-7.example.com/ada"]);
    },
  );

  test("the router's own address is refused, because its requests would never end", async () => {
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", found({ id: "7", address: "https://www.example.com" }));
    let sent = 0;
    const failures: ProxyFailure[] = [];
    const proxy = createProxy({
      routes,
      ruleset: prefixes,
      fetch: async () => ((sent += 1), new Response("reached")),
      hooks: { onProxyFailure: (failure) => void failures.push(failure) },
    });
    expect((await proxy(new Request("https://www.example.com/ada"))).status).toBe(502);
    expect(sent).toBe(0);
    expect(failures).toMatchObject([{ kind: "unusable_address", cell: "7" }]);
  });

  test.each([
    [{}, "leasehold-router"],
    [{ "cdn-loop": "cloudflare; loops=1" }, "cloudflare; loops=1, leasehold-router"],
    [{ "cdn-loop": "Leasehold-Router; a=1" }, "Leasehold-Router; a=1, leasehold-router"],
  ])("a request with %o reaches the cell, marked as passed on", async (headers, expected) => {
    const routes = new ScriptedRoutes();
    const cell = await startCell("7", (request, response) => response.end(request.headers["cdn-loop"]));
    routes.answers.set("ada", found(cell));
    const url = await serve({ routes, ruleset: prefixes });
    expect(await (await fetch(`${url}/ada`, { headers })).text()).toBe(expected);
  });

  test.each([
    "leasehold-router, leasehold-router",
    "leasehold-router,cloudflare; loops=1, LEASEHOLD-ROUTER ;a=1",
  ])("a request that two routers have passed on (%s) is refused with 508", async (loop) => {
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", found({ id: "7", address: "https://cell-7.example.com" }));
    let sent = 0;
    const failures: ProxyFailure[] = [];
    const proxy = createProxy({
      routes,
      ruleset: prefixes,
      fetch: async () => ((sent += 1), new Response("reached")),
      hooks: { onProxyFailure: (failure) => void failures.push(failure) },
    });
    const answer = await proxy(new Request("http://router/ada", { headers: { "cdn-loop": loop } }));
    expect([answer.status, sent]).toEqual([508, 0]);
    expect(await answer.json()).toMatchObject({ reason: "LOOP" });
    expect(failures).toMatchObject([{ kind: "loop" }]);
  });

  test("`http` on this machine is refused unless it is allowed", async () => {
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", found({ id: "7", address: "http://127.0.0.1:9" }));
    expect((await failing(routes, { allowLocalHttp: false })).failures).toMatchObject([
      { kind: "unusable_address" },
    ]);
  });

  test("a cell that cannot be reached: 502, and the request is not sent again", async () => {
    const routes = new ScriptedRoutes();
    let tries = 0;
    const cell = await startCell("7", (request) => {
      tries += 1;
      request.socket.destroy();
    });
    routes.answers.set("ada", found(cell));
    for (const method of ["GET", "POST", "PUT"]) {
      const init = method === "GET" ? { method } : { method, body: "order" };
      const { status, failures, body } = await failing(routes, {}, init);
      expect([status, tries]).toEqual([502, 1]);
      expect(failures).toMatchObject([
        { kind: "unreachable", cell: "7", error: expect.any(Error) as unknown },
      ]);
      expect(JSON.stringify(body)).not.toContain("127.0.0.1");
      tries = 0;
    }
    // The cell may have moved, so its address is asked for after each failure.
    expect(routes.cellRefreshes).toBe(3);
  });

  test("a cell that does not answer in time: 504, and its request is aborted", async () => {
    const routes = new ScriptedRoutes();
    const deadlines = watchDeadlines();
    let aborted = 0;
    const cell = await startCell("7", (_, response) => {
      response.once("close", () => (aborted += 1));
      deadlines.endLast();
    });
    routes.answers.set("ada", found(cell));
    expect(await failing(routes, { answerTimeoutMs: DEADLINE_MS })).toMatchObject({ status: 504 });
    const init = { method: "POST", body: "x" };
    expect(await failing(routes, { uploadTimeoutMs: DEADLINE_MS }, init)).toMatchObject({ status: 504 });
    await expect.poll(() => aborted).toBe(2);
    expect(routes.cellRefreshes).toBe(2);
  });

  test("methods that only concern proxies are refused", async () => {
    const proxy = createProxy({ routes: new ScriptedRoutes(), ruleset: prefixes });
    const request = new Request("http://router/ada");
    Object.defineProperty(request, "method", { value: "TRACE" });
    const answer = await proxy(request);
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  });

  test.each(["GET", "HEAD"])("a %s with a body is refused, and no cell gets it", async (method) => {
    const failures: ProxyFailure[] = [];
    let sent = 0;
    const routes = new ScriptedRoutes();
    routes.answers.set("ada", found({ id: "7", address: "https://cell-7.example.com" }));
    const proxy = createProxy({
      routes,
      ruleset: prefixes,
      fetch: async () => ((sent += 1), new Response("reached")),
      hooks: { onProxyFailure: (failure) => void failures.push(failure) },
    });
    // Servers can get such a request, but it cannot be made with the constructor.
    const request = new Request("http://router/ada", { method: "POST", body: "x" });
    Object.defineProperty(request, "method", { value: method });
    const answer = await proxy(request);
    expect([answer.status, sent, routes.minPositions]).toEqual([400, 0, []]);
    expect(await answer.json()).toMatchObject({
      reason: "BODY",
      detail: "a GET or HEAD request must not have a body",
    });
    expect(failures).toMatchObject([{ kind: "body", cell: null }]);
  });

  test("an upload that the client breaks off does not count as a failure of the cell", async () => {
    const failures: ProxyFailure[] = [];
    const routes = new ScriptedRoutes();
    const arrived = Promise.withResolvers<void>();
    const cell = await startCell("7", (request) => {
      request.on("error", () => {});
      request.once("data", () => arrived.resolve());
    });
    routes.answers.set("ada", found(cell));
    const proxy = createProxy({
      routes,
      ruleset: prefixes,
      allowLocalHttp: true,
      hooks: { onProxyFailure: (failure) => void failures.push(failure) },
    });
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new Uint8Array(10));
        void arrived.promise.then(() => controller.error(new Error("the connection was closed")));
      },
    });
    const init: object = { method: "PUT", body, duplex: "half" };
    expect((await proxy(new Request("http://router/ada", init))).status).toBe(499);
    expect(failures.map(({ kind }) => kind)).toEqual(["client_gone"]);
  });

  test("a request that the client has closed during the lookup is not sent", async () => {
    const client = new AbortController();
    const routes = new ScriptedRoutes();
    let sent = 0;
    routes.find = async () => {
      client.abort();
      return found({ id: "7", address: "https://cell-7.example.com" });
    };
    const fetching = async (): Promise<Response> => ((sent += 1), new Response("reached"));
    const proxy = createProxy({ routes, ruleset: prefixes, fetch: fetching });
    const answer = await proxy(new Request("http://router/ada", { signal: client.signal }));
    expect([answer.status, sent]).toEqual([499, 0]);
  });

  test("a page that cannot be made, or a body that somebody else reads, is still answered", async () => {
    const failures: ProxyFailure[] = [];
    const failurePage = (): never => {
      throw new Error("a broken page");
    };
    const proxy = createProxy({
      routes: new ScriptedRoutes(),
      ruleset: prefixes,
      failurePage,
      hooks: { onProxyFailure: (failure) => void failures.push(failure) },
    });
    const answer = await proxy(new Request("http://router/ada"));
    expect([answer.status, await answer.json()]).toMatchObject([404, { reason: "NO_CELL" }]);
    expect(failures.splice(0)).toMatchObject([{ kind: "no_cell" }]);
    const read = new Request("http://router/ada", { method: "POST", body: "x" });
    read.body?.getReader();
    expect((await proxy(read)).status).toBe(404);
    const { status, failures: others } = await lockedUpload();
    expect([status, others.map(({ kind }) => kind)]).toEqual([500, ["internal"]]);
  });

  test("an application can answer with its own page", async () => {
    const routes = new ScriptedRoutes();
    const failurePage = ({ kind, status }: ProxyFailure): Response | undefined =>
      kind === "no_cell" ? Response.json({ page: "free" }, { status }) : undefined;
    expect((await failing(routes, { failurePage })).body).toEqual({ page: "free" });
    routes.answers.set("ada", { kind: "unavailable", detail: "Down.", retryAfterMs: 1_000 });
    expect((await failing(routes, { failurePage })).body).toMatchObject({ reason: "UNAVAILABLE" });
  });

  test("an unexpected error is a 500, and no hook that throws changes an answer", async () => {
    const routes = new ScriptedRoutes();
    routes.find = () => Promise.reject(new Error("a secret"));
    const { status, body, failures } = await failing(routes);
    expect([status, body["reason"]]).toEqual([500, "INTERNAL"]);
    expect(JSON.stringify(body)).not.toContain("a secret");
    expect(failures[0]?.error).toEqual(new Error("a secret"));
    const throwing = (): never => {
      throw new Error("a broken hook");
    };
    const hooks = {
      onProxyFailure: throwing,
      onForwarded: throwing,
      onFallback: throwing,
      onRefused: throwing,
    };
    expect(await failing(new ScriptedRoutes(), { hooks })).toMatchObject({ status: 404 });
  });
});

test("the rule's own cell is asked without a lookup, and a fallback is counted for its rule", async () => {
  const routes = new ScriptedRoutes();
  const cell = await startCell("1", (request, response) => {
    const { "x-gitlab-http-router-rule-action": action, "x-gitlab-http-router-rule-type": type } =
      request.headers;
    response.end(`${String(action)} ${String(type)} ${String(request.headers["leasehold-epoch"])}`);
  });
  routes.addresses.set("1", cell);
  const fallbacks: string[] = [];
  const forwarded: ForwardedEvent[] = [];
  const ruleset = rulesOf(({ url }) => [
    {
      rule: "all",
      action: "cell",
      cell: "1",
      continues: false,
      isFallback: url.toString().endsWith("/fallback"),
    },
  ]);
  const hooks = {
    onFallback: ({ rule }: { rule: string }) => void fallbacks.push(rule),
    onForwarded: (event: ForwardedEvent) => void forwarded.push(event),
  };
  const url = await serve({ routes, ruleset, hooks });
  expect(await (await fetch(`${url}/named`)).text()).toBe("classify CELL_ID undefined");
  expect(fallbacks).toEqual([]);
  expect(await (await fetch(`${url}/fallback`)).text()).toBe("proxy undefined undefined");
  expect(fallbacks).toEqual(["all"]);
  const event = { rule: "all", cell: "1", status: 200, hops: 0 };
  expect(forwarded).toEqual([event, event]);
});

test("a wrong option is named", () => {
  const routes = new ScriptedRoutes();
  const options = { routes, ruleset: prefixes };
  for (const option of ["boundMs", "answerTimeoutMs", "uploadTimeoutMs", "discardBytes", "discardMs"])
    for (const value of [-1, 1.5, Infinity, "1"])
      expect(() => createProxy({ ...options, [option]: value })).toThrow(
        new RegExp(`^\`${option}\` must be a whole number from 0 to \\d+; got ${String(value)}$`),
      );
  expect(() => createProxy({ ...options, routes: {} as never })).toThrow("`routes` must be");
  expect(() => createProxy({ ...options, ruleset: {} as never })).toThrow("`ruleset` must be");
});
