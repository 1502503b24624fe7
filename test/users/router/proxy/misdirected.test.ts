/** A cell that does not have the name answers 421, and the proxy finds the right one. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestListener } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import type { ForwardedEvent, RefusedEvent } from "../../../../src/users/router/hooks.ts";
import type { CellAddress } from "../../../../src/users/router/lookups/routes.ts";
import type { ProxyFailure } from "../../../../src/users/router/proxy/failure.ts";
import type { ProxyOptions } from "../../../../src/users/router/proxy/options.ts";
import { compileRuleset } from "../../../../src/users/router/rules/ruleset.ts";
import type { Ruleset } from "../../../../src/users/router/rules/types.ts";
import { found, none, prefixes, rulesOf, ScriptedRoutes, serve, startCell, stopServers } from "./fixture.ts";

afterEach(stopServers);

interface Scene {
  routes: ScriptedRoutes;
  url: string;
  /** The requests that reached a cell, as `cell method hops`. */
  arrived: string[];
  refused: RefusedEvent[];
  forwarded: ForwardedEvent[];
  failures: ProxyFailure[];
}

const refuse: RequestListener = (request, response) => {
  request.resume();
  response.writeHead(421, { "leasehold-epoch": "12", "cache-control": "no-store" }).end("not here");
};

const accept: RequestListener = (request, response) => {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => (bytes += chunk.length));
  request.on("end", () => response.end(`served ${bytes} bytes, ${String(request.headers.cookie)}`));
};

/** Two cells, of which the router believes that cell 1 has `ada`. */
async function scene(
  first: RequestListener,
  second: RequestListener,
  given: (cells: [CellAddress, CellAddress], routes: ScriptedRoutes) => Partial<ProxyOptions> | void,
): Promise<Scene> {
  const arrived: string[] = [];
  const record =
    (id: string, listener: RequestListener): RequestListener =>
    (request, response) => {
      const arrival = `${id} ${request.method} ${String(request.headers["leasehold-hops"])}`;
      // After a 421, Node's `fetch` sends a request without a body again, on a new connection.
      if (arrived.at(-1) !== arrival) arrived.push(arrival);
      listener(request, response);
    };
  const cells: [CellAddress, CellAddress] = [
    await startCell("1", record("1", first)),
    await startCell("2", record("2", second)),
  ];
  const routes = new ScriptedRoutes();
  for (const cell of cells) routes.addresses.set(cell.id, cell);
  routes.answers.set("ada", found(cells[0]));
  const [refused, forwarded, failures]: [RefusedEvent[], ForwardedEvent[], ProxyFailure[]] = [[], [], []];
  const options = given(cells, routes);
  const url = await serve({
    routes,
    ruleset: prefixes,
    boundMs: 2_500,
    hooks: {
      onRefused: (event) => void refused.push(event),
      onForwarded: (event) => void forwarded.push(event),
      onProxyFailure: (failure) => void failures.push(failure),
    },
    ...options,
  });
  return { routes, url, arrived, refused, forwarded, failures };
}

const moved = ([, second]: [CellAddress, CellAddress], routes: ScriptedRoutes): void =>
  void routes.fresh.set("ada", found(second, { epoch: 13, position: 4_720 }));

const browser = { "sec-fetch-site": "same-origin", cookie: "session=1" };

const post = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, { method: "POST", body: "order", headers, redirect: "manual" });

describe("a request without a body", () => {
  test.each(["GET", "HEAD", "POST"])("case 19: a misdirected %s is healed in one hop", async (method) => {
    const { routes, url, arrived, refused, forwarded, failures } = await scene(refuse, accept, moved);
    const answer = await fetch(`${url}/ada`, { method });
    expect(answer.status).toBe(200);
    expect(arrived).toEqual([`1 ${method} 0`, `2 ${method} 1`]);
    expect(routes.refreshed).toEqual([{ name: { type: "ROUTES", value: "ada" }, shard: 3, position: 4_711 }]);
    expect(refused).toEqual([{ rule: "paths", cell: "1", hops: 0, epoch: 12, tombstoneEpoch: 12 }]);
    expect(forwarded).toEqual([{ rule: "paths", cell: "2", status: 200, hops: 1 }]);
    expect(failures).toEqual([]);
    // The lookup after the fresh answer is not older than it.
    expect(routes.minPositions).toEqual([[], [[3, 4_720]]]);
  });

  test("case 19: two wrong cells end after one hop with 503", async () => {
    const { url, arrived, refused, failures } = await scene(refuse, refuse, moved);
    const answer = await fetch(`${url}/ada`);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "3"]);
    expect(arrived).toEqual(["1 GET 0", "2 GET 1"]);
    expect(refused.map(({ cell, epoch }) => [cell, epoch])).toEqual([
      ["1", 12],
      ["2", 13],
    ]);
    expect(failures).toMatchObject([{ kind: "misdirected", cell: "2" }]);
  });

  test("a cell that the coordinator still names is not asked twice", async () => {
    const { url, arrived } = await scene(refuse, accept, ([first], routes) => {
      routes.fresh.set("ada", found(first, { position: 4_720 }));
    });
    expect((await fetch(`${url}/ada`)).status).toBe(503);
    expect(arrived).toEqual(["1 GET 0"]);
  });

  test("a name that is gone is a 404, or belongs to the next candidate", async () => {
    const gone = await scene(refuse, accept, () => {});
    expect((await fetch(`${gone.url}/ada`)).status).toBe(404);
    const { url, arrived } = await scene(refuse, accept, ([first, second], routes) => {
      routes.answers.set("ada/app", found(first));
      routes.answers.set("ada", found(second));
      routes.fresh.set("ada/app", none());
    });
    expect((await fetch(`${url}/ada/app`)).status).toBe(200);
    expect(arrived).toEqual(["1 GET 0", "2 GET 1"]);
  });

  test("a coordinator that cannot be asked is a 503, not a 404", async () => {
    const { url, failures } = await scene(refuse, accept, (_, routes) => {
      routes.fresh.set("ada", { kind: "unavailable", detail: "Down.", retryAfterMs: 500 });
    });
    const answer = await fetch(`${url}/ada`);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(failures).toMatchObject([{ kind: "unavailable" }]);
  });
});

describe("a request with a body", () => {
  test("case 19: a misdirected POST gets 307 with the position, and arrives once", async () => {
    const { url, arrived, failures } = await scene(refuse, accept, moved);
    const answer = await post(`${url}/ada?q=1`, browser);
    expect([answer.status, answer.headers.get("location")]).toEqual([307, "/ada?q=1"]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const attributes = "Max-Age=3; Path=/; HttpOnly; Secure; SameSite=Lax";
    expect(answer.headers.getSetCookie()).toEqual([
      `Leasehold-Position=3:4720; ${attributes}`,
      `Leasehold-Redirected=name; ${attributes}`,
    ]);
    expect(arrived).toEqual(["1 POST 0"]);
    expect(failures).toMatchObject([{ kind: "misdirected", cell: "1" }]);
    const again = await post(`${url}/ada?q=1`, {
      cookie: "session=1; Leasehold-Position=3:4720; Leasehold-Redirected=1",
    });
    expect(await again.text()).toBe("served 5 bytes, session=1");
    expect(arrived).toEqual(["1 POST 0", "2 POST 0"]);
  });

  test("a client is sent back only once", async () => {
    const { url, arrived } = await scene(refuse, refuse, moved);
    const cookie = "session=1; Leasehold-Position=3:4700; Leasehold-Redirected=1";
    const answer = await post(`${url}/ada`, { ...browser, cookie });
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "3"]);
    expect(arrived).toEqual(["1 POST 0"]);
  });

  test.each([
    ["without cookies", {}],
    ["from another site", { ...browser, "sec-fetch-site": "cross-site" }],
  ])("a client %s gets 503 with the time to retry", async (_, headers) => {
    const { url, arrived } = await scene(refuse, accept, moved);
    const answer = await post(`${url}/ada`, headers);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "3"]);
    expect(arrived).toEqual(["1 POST 0"]);
    // The next one goes to the right cell, because the answer was refreshed.
    expect((await post(`${url}/ada`, headers)).status).toBe(200);
    expect(arrived).toEqual(["1 POST 0", "2 POST 0"]);
  });

  test("a path that begins with two slashes is not a redirect to another host", async () => {
    const { url } = await scene(refuse, accept, ([first, second], routes) => {
      routes.answers.set("evil.example.com", found(first));
      routes.fresh.set("evil.example.com", found(second, { position: 4_720 }));
    });
    const answer = await post(`${url}//evil.example.com`, browser);
    const location = answer.headers.get("location") ?? "";
    expect(new URL(location, url).href).toBe(`${url}//evil.example.com`);
  });

  test("case 19: a 421 before the end of 50 MB reaches the client, and the body is not kept", async () => {
    const { url, arrived } = await scene(refuse, accept, moved);
    const total = 50_000_000;
    const headers = { ...browser, "content-length": total };
    const client = httpRequest(`${url}/ada`, { method: "PUT", headers });
    const answered = once(client, "response");
    const chunk = Buffer.alloc(1_000_000);
    for (let sent = 0; sent < total; sent += chunk.length)
      if (!client.write(chunk)) await once(client, "drain");
    client.end();
    const [answer] = (await answered) as [IncomingMessage];
    expect(answer.resume().statusCode).toBe(307);
    expect(arrived).toEqual(["1 PUT 0"]);
  });

  test("a body that never ends is not read for longer than the limit", async () => {
    const { url } = await scene(refuse, accept, (cells, routes) => {
      moved(cells, routes);
      return { discardBytes: 1_000_000, discardMs: 200 };
    });
    const client = httpRequest(`${url}/ada`, {
      method: "PUT",
      headers: { ...browser, "content-length": 9e9 },
    });
    client.on("error", () => {});
    const answered = once(client, "response");
    client.write("a little");
    const [answer] = (await answered) as [IncomingMessage];
    expect(answer.statusCode).toBe(307);
    client.destroy();
  });
});

describe("a rule that names the cell", () => {
  const token = (continues: boolean) =>
    rulesOf(({ url }) => [
      { rule: "the token", action: "cell", cell: "1", continues, isFallback: false },
      ...(continues ? [...prefixes.matches({ url, headers: new Headers(), method: "GET" })] : []),
    ]);

  test("case 22: a token that names a tenant's old cell is served by the new one, in one hop", async () => {
    const { routes, url, arrived, refused, forwarded } = await scene(refuse, accept, ([, second], given) => {
      given.answers.set("ada", found(second));
      return { ruleset: token(true) };
    });
    expect((await fetch(`${url}/ada`)).status).toBe(200);
    expect(arrived).toEqual(["1 GET 0", "2 GET 1"]);
    expect(routes.refreshed).toEqual([]);
    expect(refused).toMatchObject([{ rule: "the token", cell: "1", epoch: null }]);
    expect(forwarded).toEqual([{ rule: "paths", cell: "2", status: 200, hops: 1 }]);
  });

  test("case 22: with a body, the client is sent back, and the rule is left out", async () => {
    const { url, arrived } = await scene(refuse, accept, ([, second], routes) => {
      routes.answers.set("ada", found(second));
      return { ruleset: token(true) };
    });
    const answer = await post(`${url}/ada`, browser);
    const [cookie = "", ...others] = answer.headers.getSetCookie();
    expect([answer.status, others]).toEqual([307, []]);
    expect(cookie).toMatch(/^Leasehold-Redirected=rule:the%20token; Max-Age=3;/);
    const again = await post(`${url}/ada`, { cookie: cookie.split(";")[0] ?? "" });
    expect(again.status).toBe(200);
    expect(arrived).toEqual(["1 POST 0", "2 POST 0"]);
    // Another value is ignored.
    for (const value of ["rule:%", "rule:other", "name"])
      expect((await post(`${url}/ada`, { cookie: `Leasehold-Redirected=${value}` })).status).toBe(503);
  });

  test("the longest id of a rule makes a cookie that browsers keep", async () => {
    const { url } = await scene(refuse, accept, ([, second], routes) => {
      routes.answers.set("ada", found(second));
      const ruleset = (id: string): Ruleset =>
        compileRuleset([
          { id, action: "cell", cell: "1", onNotFound: "next" },
          {
            match: { type: "path", pattern: "/:name" },
            action: "classify",
            classify: { type: "ROUTES", value: "${name}" },
          },
        ]);
      // Each of these characters becomes 12 bytes in the cookie.
      expect(() => ruleset("🦓".repeat(51))).toThrow(/`rules\[0\]\.id` has 204 bytes/);
      return { ruleset: ruleset("🦓".repeat(50)) };
    });
    const answer = await post(`${url}/ada`, browser);
    const [cookie = ""] = answer.headers.getSetCookie();
    expect(answer.status).toBe(307);
    expect(Buffer.byteLength(cookie)).toBeLessThan(1_000);
    expect((await post(`${url}/ada`, { cookie: cookie.split(";")[0] ?? "" })).status).toBe(200);
  });

  test("without a rule after it, the owner may still exist: 503, not 404", async () => {
    const { url, arrived, refused, failures } = await scene(refuse, accept, () => ({
      ruleset: token(false),
    }));
    const answer = await fetch(`${url}/ada`);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "3"]);
    expect(arrived).toEqual(["1 GET 0"]);
    expect(refused).toMatchObject([{ rule: "the token", cell: "1" }]);
    expect(failures).toMatchObject([{ kind: "misdirected", rule: "the token", cell: "1" }]);
  });

  test("a default cell that refuses the request ends it with 404", async () => {
    const ruleset = rulesOf(() => [
      { rule: "default", action: "cell", cell: "1", continues: false, isFallback: true },
    ]);
    const { url, failures } = await scene(refuse, accept, () => ({ ruleset }));
    expect((await fetch(`${url}/ada`)).status).toBe(404);
    expect(failures).toMatchObject([{ kind: "no_cell" }]);
  });
});
