/** `npm run router`: the Worker of `router/` in workerd, in front of cells. router.deep.test.ts has more. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { browser, METRICS_KEY, MIB, useRouter } from "./router-rig.ts";
import { RouterProcess } from "./router-process.ts";

const rig = useRouter();
const { coordinator, one, two, nameOf, movedName, rawAnswer, upload } = rig;

describe("forwarding", () => {
  test("case 19: the cell gets the route, and no header of the router from a client", async () => {
    const name = await nameOf(one);
    const answer = await fetch(`${rig.router.url}/${name}/headers`, {
      headers: {
        "leasehold-cell": "9",
        "leasehold-anything": "x",
        "x-forwarded-host": "evil.example.com",
        "x-forwarded-for": "203.0.113.9",
        "x-gitlab-http-router-rule-action": "proxy",
        cookie: "a=1; Leasehold-Position=3:1",
      },
    });
    const headers = (await answer.json()) as Record<string, string>;
    expect(headers).toMatchObject({
      "leasehold-cell": "1",
      "leasehold-hops": "0",
      "x-forwarded-host": new URL(rig.router.url).host,
      "x-forwarded-proto": "http",
      "x-gitlab-http-router-rule-action": "classify",
      "x-gitlab-http-router-rule-type": "ROUTES",
      cookie: "a=1",
    });
    expect(Number(headers["leasehold-epoch"])).toBeGreaterThan(100);
    expect(headers).not.toHaveProperty("leasehold-anything");
    expect(headers["x-forwarded-for"] ?? "").not.toContain("203.0.113.9");
    expect(answer.headers.get("leasehold-cell")).toBe("1");
    expect(answer.headers.has("leasehold-secret")).toBe(false);
  });

  test("redirects, cookies and compressed bodies are those of the cell", async () => {
    const name = await nameOf(one);
    const answer = await fetch(`${rig.router.url}/${name}/see-other`, { redirect: "manual" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/elsewhere"]);
    expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    const compressed = await fetch(`${rig.router.url}/${name}/gzip`);
    expect(compressed.headers.get("content-encoding")).toBe("gzip");
    expect(await compressed.text()).toBe("long ".repeat(1_000));
    const plain = await fetch(`${rig.router.url}/${name}/gzip`, {
      headers: { "accept-encoding": "identity" },
    });
    expect(await plain.text()).toBe("long ".repeat(1_000));
  });

  test("headers of one connection stay on it", async () => {
    const name = await nameOf(one);
    const { host } = new URL(rig.router.url);
    const answer = await rawAnswer(
      `GET /${name}/headers HTTP/1.1\r\nHost: ${host}\r\nConnection: close, x-mine\r\nX-Mine: 1\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(answer).not.toContain("x-mine");
    const fromCell = await rawAnswer(
      `GET /${name}/connection HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    expect(fromCell).toMatch(/^HTTP\/1.1 200 /);
    expect(fromCell.toLowerCase()).not.toMatch(/keep-alive|x-hop/);
  });

  test.each(["a b", "[", "%zz", "a:99999"])("a request for the host %j is refused", async (host) => {
    const answer = await rawAnswer(`GET /x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('"reason":"URL"');
    expect(one.arrived).toEqual([]);
  });

  test.each(["/-/router/health", "/-/./router/health", "/-/x/../router/health", "/-\\router/health"])(
    "%j is the router's own path",
    async (path) => {
      const { host } = new URL(rig.router.url);
      const answer = await rawAnswer(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toContain('{"status":"ok"}');
    },
  );

  test("a fallback serves the start page, and a free name has no cell", async () => {
    one.names.add("");
    expect((await fetch(`${rig.router.url}/`)).status).toBe(200);
    expect(one.arrived).toEqual(["GET / 0"]);
    const free = await fetch(`${rig.router.url}/nobody/has/this`);
    expect([free.status, free.headers.get("cache-control")]).toEqual([404, "no-store"]);
    expect(await free.json()).toMatchObject({ reason: "NO_CELL" });
  });

  test("case 21: a cell whose address is not a bare https origin gets no request", async () => {
    coordinator.move("unusable", "3");
    const answer = await fetch(`${rig.router.url}/unusable`);
    expect(answer.status).toBeGreaterThanOrEqual(502);
    expect(answer.status).toBeLessThanOrEqual(503);
    expect(await answer.text()).not.toContain("cell-3.example.com");
  });
});

describe("streams", () => {
  test("case 20: an upload passes with its length", async () => {
    const name = await nameOf(one);
    const { status, body } = await upload(`/${name}`, 4 * MIB);
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual({ cell: "1", bytes: 4 * MIB, length: String(4 * MIB) });
  });

  test("an upload without a length passes", async () => {
    const name = await nameOf(one);
    const parts = Array.from({ length: 8 }, () => new Uint8Array(MIB / 8));
    const init: object = { method: "POST", body: ReadableStream.from(parts), duplex: "half" };
    const answer = await fetch(`${rig.router.url}/${name}`, init);
    expect(await answer.json()).toEqual({ cell: "1", bytes: MIB, encoding: "chunked" });
  });

  test("case 20: server-sent events arrive one by one, and end when the client leaves", async () => {
    const name = await nameOf(one);
    const client = new AbortController();
    const answer = await fetch(`${rig.router.url}/${name}/events`, { signal: client.signal });
    const reader = (answer.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    expect((await reader.read()).value).toBe("data: 1\n\n");
    one.tell();
    expect((await reader.read()).value).toBe("data: 2\n\n");
    // workerd notices that the client has left when it sends the next event.
    client.abort();
    await expect.poll(() => one.tell().left).toEqual([`/${name}/events`]);
  });

  test("case 20: a client that leaves before the answer ends its request at the cell", async () => {
    const name = await nameOf(one);
    const { hostname, port, host } = new URL(rig.router.url);
    const client = connect(Number(port), hostname);
    client.write(`GET /${name}/hang HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await expect.poll(() => one.arrived).toEqual([`GET /${name}/hang 0`]);
    // workerd notices a lost connection before it answers, but not one that the client has only half closed.
    client.resetAndDestroy();
    await expect.poll(() => one.left).toEqual([`/${name}/hang`]);
  });

  test("case 20: a WebSocket passes in both directions, and its end reaches the cell", async () => {
    const name = await nameOf(one);
    const socket = new WebSocket(`${rig.router.url.replace("http", "ws")}/${name}/socket`);
    await once(socket, "open");
    for (const text of ["first", "second"]) {
      socket.send(text);
      const [message] = (await once(socket, "message")) as [MessageEvent];
      expect(message.data).toBe(text);
    }
    socket.close();
    await expect.poll(() => one.left).toEqual([`/${name}/socket`]);
  });
});

describe("a cell that does not have the name", () => {
  test("case 19: a GET is healed in one hop, and the next one needs none", async () => {
    const name = await movedName();
    const answer = await fetch(`${rig.router.url}/${name}`);
    expect(await answer.json()).toMatchObject({ cell: "2" });
    expect(one.arrived).toEqual([`GET /${name} 0`]);
    expect(two.arrived).toEqual([`GET /${name} 1`]);
    await fetch(`${rig.router.url}/${name}`);
    expect([one.arrived.length, two.arrived.at(-1)]).toEqual([1, `GET /${name} 0`]);
  });

  test("case 19: a WebSocket is healed in one hop", async () => {
    const name = await movedName();
    const socket = new WebSocket(`${rig.router.url.replace("http", "ws")}/${name}/socket`);
    await once(socket, "open");
    expect(two.arrived).toEqual([`GET /${name}/socket 1`]);
    socket.close();
    await expect.poll(() => two.left).toEqual([`/${name}/socket`]);
  });

  test("case 19: a POST with a body gets 307, and arrives once", async () => {
    const name = await movedName();
    const post = (cookie: string): Promise<Response> =>
      fetch(`${rig.router.url}/${name}`, {
        method: "POST",
        body: "order",
        headers: { ...browser, cookie },
        redirect: "manual",
      });
    const first = await post("session=1");
    expect([first.status, first.headers.get("location")]).toEqual([307, `/${name}`]);
    const cookies = first.headers.getSetCookie().map((cookie) => cookie.split(";")[0]);
    expect(cookies).toEqual([
      expect.stringMatching(/^Leasehold-Position=3:\d+$/) as unknown,
      "Leasehold-Redirected=name",
    ]);
    expect(two.arrived).toEqual([]);
    const second = await post(["session=1", ...cookies].join("; "));
    expect(await second.json()).toMatchObject({ cell: "2", bytes: 5 });
    expect([one.arrived.length, two.arrived]).toEqual([1, [`POST /${name} 0`]]);
  });

  test("case 19: two wrong cells end after one hop with 503", async () => {
    const name = await movedName();
    two.names.delete(name);
    const answer = await fetch(`${rig.router.url}/${name}`);
    expect([answer.status, answer.headers.has("retry-after")]).toEqual([503, true]);
    expect(one.arrived).toEqual([`GET /${name} 0`]);
    expect(two.arrived).toEqual([`GET /${name} 1`]);
  });
});

describe("the router's own paths", () => {
  test("everybody may ask for its health, and only the holder of the key for its metrics", async () => {
    const health = await fetch(`${rig.router.url}/-/router/health`);
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
    const metrics = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${rig.router.url}/-/router/metrics`, { headers });
    expect((await metrics({})).status).toBe(401);
    expect((await metrics({ authorization: "Bearer wrong" })).status).toBe(401);
    const answer = await metrics({ authorization: `Bearer ${METRICS_KEY}` });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await answer.text();
    for (const name of [
      "route_total",
      "route_misdirected_total",
      "proxy_requests_total",
      "proxy_refused_total",
    ])
      expect(text).toContain(name);
    for (const path of ["/-/router/", "/-/router/other"])
      expect((await fetch(`${rig.router.url}${path}`)).status).toBe(404);
    const posted = await fetch(`${rig.router.url}/-/router/health`, { method: "POST" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });

  test("no line of output has a key or a name", () => {
    const output = `${rig.router.stdout}${rig.router.stderr}`;
    for (const secret of ["key-of-a-router", METRICS_KEY, "name-"]) expect(output).not.toContain(secret);
  });
});

test("the local router has the same settings as its wrangler.toml", () => {
  const at = (path: string): string => readFileSync(join(import.meta.dirname, "../../..", path), "utf8");
  const [toml, local] = [at("router/wrangler.toml"), at("src/hosts/router/router-worker.ts")];
  const date = /^compatibility_date = "(.*)"$/m.exec(toml)?.[1];
  const flags = /^compatibility_flags = (\[.*\])$/m.exec(toml)?.[1];
  expect(local).toContain(`compatibilityDate: "${date}"`);
  expect(local).toContain(`compatibilityFlags: ${flags}`);
});

test("a wrong option causes a one-line error, and a signal stops the router", async () => {
  const { code, stderr } = await new RouterProcess(0).ended;
  expect([code, stderr]).toEqual([1, "leasehold: --port must be a whole number from 1 to 65535\n"]);
  expect(await rig.router.end("SIGTERM")).toMatchObject({ code: 0 });
});
