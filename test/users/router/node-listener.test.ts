/** A router on Node, as the docs show it: `node:http`, the adapter and the proxy. */
import { once } from "node:events";
import { request, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import {
  compileRuleset,
  createProxy,
  createRoutes,
  type ProxyFailure,
} from "../../../src/users/router/index.ts";
import { closedUrl, found, ScriptedRoutes, serveProxy, startCell, stopServers } from "./proxy/fixture.ts";

afterEach(stopServers);

const ruleset = compileRuleset([
  {
    id: "paths",
    match: { type: "path", pattern: "/:name/*" },
    action: "classify",
    classify: { type: "ROUTES", value: "${name}" },
  },
]);

test("passes bodies and the client's address, and leaves the process's classes alone", async () => {
  const classes = [Request, Response];
  let headers: IncomingHttpHeaders = {};
  const cell = await startCell("7", (incoming, outgoing) => {
    headers = incoming.headers;
    incoming.pipe(outgoing.writeHead(201, { "x-of-cell": "1" }));
  });
  const routes = new ScriptedRoutes();
  routes.answers.set("ada", found(cell));
  const url = await serveProxy(createProxy({ routes, ruleset, allowLocalHttp: true }));
  const body = "0123456789abcdef".repeat(65_536);
  const answer = await fetch(`${url}/ada`, { method: "POST", body });
  expect([answer.status, answer.headers.get("x-of-cell")]).toEqual([201, "1"]);
  expect((await answer.text()) === body).toBe(true);
  expect(headers).toMatchObject({ "x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http" });
  expect([Request, Response]).toEqual(classes);
});

test("a client that leaves ends the request to the cell", async () => {
  const left = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const cell = await startCell("7", (_, outgoing) => {
    outgoing.once("close", left.resolve);
    begun.resolve();
  });
  const routes = new ScriptedRoutes();
  routes.answers.set("ada", found(cell));
  const url = await serveProxy(createProxy({ routes, ruleset, allowLocalHttp: true }));
  const leaving = new AbortController();
  const answer = fetch(`${url}/ada`, { signal: leaving.signal });
  await begun.promise;
  leaving.abort();
  await expect(answer).rejects.toThrow();
  await left.promise;
});

test("without a coordinator: 503, and the cause is for the hook only", async () => {
  const failures: ProxyFailure[] = [];
  const routes = createRoutes({ url: await closedUrl(), key: "key", reports: false });
  const onProxyFailure = (failure: ProxyFailure): void => void failures.push(failure);
  const url = await serveProxy(createProxy({ routes, ruleset, hooks: { onProxyFailure } }));
  const answer = await fetch(`${url}/ada`);
  expect(answer.status).toBe(503);
  expect(await answer.json()).toEqual({
    type: "about:blank",
    title: "The cell cannot be looked up now",
    status: 503,
    reason: "UNAVAILABLE",
  });
  expect(failures).toMatchObject([{ detail: expect.stringContaining("ECONNREFUSED") as string }]);
  routes.close();
});

test("a Host header that is none: 400", async () => {
  const url = await serveProxy(createProxy({ routes: new ScriptedRoutes(), ruleset }));
  const sent = request(url, { headers: { host: "not a host" } }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  expect(answer.statusCode).toBe(400);
  expect(await text(answer)).not.toContain("Error");
});
