/** Tests `npm run router` as a process: the Worker of `router/` in workerd, in front of cells. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePort } from "../../../scripts/free-port.ts";
import { RouterProcess } from "./router-process.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";
import { TestCell } from "./test-cell.ts";

const MIB = 2 ** 20;
const METRICS_KEY = "the-key-of-the-metrics-in-the-tests";

const coordinator = new ScriptedCoordinator();
const [one, two] = [new TestCell("1"), new TestCell("2")];
let router: RouterProcess;
let coordinatorUrl: string;

beforeAll(async () => {
  coordinatorUrl = await coordinator.start();
  for (const cell of [one, two]) coordinator.addresses.set(cell.id, (await cell.start()).address);
  coordinator.addresses.set("3", "http://cell-3.example.com/app");
  router = await new RouterProcess(await freePort(), ["--coordinator", coordinatorUrl], {
    LEASEHOLD_KEY: "key-of-a-router",
    ROUTER_METRICS_KEY: METRICS_KEY,
    // Without reports, a router keeps a wrong answer for as long as it may.
    ROUTER_REPORTS: "off",
    ROUTER_MAX_AGE_MS: "60000",
  }).ready();
});

afterAll(async () => {
  await router?.end("SIGKILL");
  await Promise.all([one, two, coordinator].map((part) => part.stop()));
});

beforeEach(() => {
  for (const { names, arrived, left } of [one, two]) {
    names.clear();
    arrived.length = 0;
    left.length = 0;
  }
});

let names = 0;

/** Gives a new name to a cell, and lets the router remember that. */
async function nameOf(cell: TestCell): Promise<string> {
  const name = `name-${(names += 1)}`;
  coordinator.move(name, cell.id);
  cell.names.add(name);
  expect((await fetch(`${router.url}/${name}`)).status).toBe(200);
  cell.arrived.length = 0;
  return name;
}

/** A name that the router believes to be at cell 1, although cell 2 has it now. */
async function movedName(): Promise<string> {
  const name = await nameOf(one);
  one.names.delete(name);
  two.names.add(name);
  coordinator.move(name, "2");
  return name;
}

interface Received {
  status: number | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

/** Sends `totalBytes` as a body, also after an early answer, as a simple client does. */
async function upload(path: string, totalBytes: number, headers: object = {}): Promise<Received> {
  const client = httpRequest(`${router.url}${path}`, {
    method: "PUT",
    headers: { "content-length": totalBytes, ...headers },
  });
  const answered = once(client, "response") as Promise<[IncomingMessage]>;
  const chunk = Buffer.alloc(MIB / 4);
  for (let sent = 0; sent < totalBytes; sent += chunk.length)
    if (!client.write(chunk)) await once(client, "drain");
  client.end();
  const [answer] = await answered;
  const body = Buffer.concat(await answer.toArray()).toString();
  return { status: answer.statusCode, headers: answer.headers, body };
}

/** Sends the bytes of a request, and returns those of the answer. */
async function rawAnswer(request: string): Promise<string> {
  const { hostname, port } = new URL(router.url);
  const client = connect(Number(port), hostname);
  client.write(request);
  return Buffer.concat(await client.toArray()).toString();
}

const browser = { "sec-fetch-site": "same-origin", cookie: "session=1" };

describe("forwarding", () => {
  test("case 19: the cell gets the route, and no header of the router from a client", async () => {
    const name = await nameOf(one);
    const answer = await fetch(`${router.url}/${name}/headers`, {
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
      "x-forwarded-host": new URL(router.url).host,
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
    const answer = await fetch(`${router.url}/${name}/see-other`, { redirect: "manual" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/elsewhere"]);
    expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    const compressed = await fetch(`${router.url}/${name}/gzip`);
    expect(compressed.headers.get("content-encoding")).toBe("gzip");
    expect(await compressed.text()).toBe("long ".repeat(1_000));
    const plain = await fetch(`${router.url}/${name}/gzip`, { headers: { "accept-encoding": "identity" } });
    expect(await plain.text()).toBe("long ".repeat(1_000));
  });

  test("headers of one connection stay on it", async () => {
    const name = await nameOf(one);
    const { host } = new URL(router.url);
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
      const { host } = new URL(router.url);
      const answer = await rawAnswer(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toContain('{"status":"ok"}');
    },
  );

  test("a fallback serves the start page, and a free name has no cell", async () => {
    one.names.add("");
    expect((await fetch(`${router.url}/`)).status).toBe(200);
    expect(one.arrived).toEqual(["GET / 0"]);
    const free = await fetch(`${router.url}/nobody/has/this`);
    expect([free.status, free.headers.get("cache-control")]).toEqual([404, "no-store"]);
    expect(await free.json()).toMatchObject({ reason: "NO_CELL" });
  });

  test("case 21: a cell whose address is not a bare https origin gets no request", async () => {
    coordinator.move("unusable", "3");
    const answer = await fetch(`${router.url}/unusable`);
    expect(answer.status).toBeGreaterThanOrEqual(502);
    expect(answer.status).toBeLessThanOrEqual(503);
    expect(await answer.text()).not.toContain("cell-3.example.com");
  });
});

test("a cell that has moved to another port gets the next requests", async () => {
  const cell = await new TestCell("5").start();
  coordinator.addresses.set("5", cell.address);
  const name = await nameOf(cell);
  await cell.stop();
  const moved = await new TestCell("5").start();
  moved.names.add(name);
  try {
    coordinator.addresses.set("5", moved.address);
    const { asked } = coordinator;
    expect((await fetch(`${router.url}/${name}`)).status).toBe(502);
    // The router reads the addresses in the background. By itself, it would do so after 30 s.
    const status = async (): Promise<number> => (await fetch(`${router.url}/${name}`)).status;
    await expect.poll(status, { timeout: 15_000 }).toBe(200);
    expect(coordinator.asked).toBe(asked);
  } finally {
    await moved.stop();
    coordinator.addresses.delete("5");
  }
});

describe("streams", () => {
  /** Returns the result, and by how much the memory of the router grew meanwhile, in bytes. */
  async function growthDuring<Result>(work: () => Promise<Result>): Promise<[Result, number]> {
    const before = router.memoryBytes();
    let highest = before;
    const sampling = setInterval(() => (highest = Math.max(highest, router.memoryBytes())), 20);
    try {
      return [await work(), highest - before];
    } finally {
      clearInterval(sampling);
    }
  }

  test("case 20: an upload of 100 MB passes with its length, in little memory", async () => {
    const name = await nameOf(one);
    await upload(`/${name}`, 10 * MIB);
    const [{ status, body }, growth] = await growthDuring(() => upload(`/${name}`, 100 * MIB));
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual({
      cell: "1",
      bytes: 100 * MIB,
      length: String(100 * MIB),
    });
    expect(growth).toBeLessThan(50 * MIB);
  });

  test("case 20: two uploads of 100 MB at a time pass beside a WebSocket and events", async () => {
    const [first, second] = [await nameOf(one), await nameOf(two)];
    const socket = new WebSocket(`${router.url.replace("http", "ws")}/${first}/socket`);
    await once(socket, "open");
    const client = new AbortController();
    const events = await fetch(`${router.url}/${second}/events`, { signal: client.signal });
    const reader = (events.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await upload(`/${first}`, 10 * MIB);

    const [answers, growth] = await growthDuring(async () => {
      const uploads = [first, second].map((name) => upload(`/${name}`, 100 * MIB));
      socket.send("meanwhile");
      const [message] = (await once(socket, "message")) as [MessageEvent];
      expect(message.data).toBe("meanwhile");
      expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^data: \d\n\n/);
      return Promise.all(uploads);
    });
    for (const [place, cell] of ["1", "2"].entries())
      expect(JSON.parse(answers[place]?.body ?? "")).toMatchObject({ cell, bytes: 100 * MIB });
    expect(growth).toBeLessThan(50 * MIB);
    client.abort();
    socket.close();
    await expect.poll(() => one.left).toEqual([`/${first}/socket`]);
    await expect.poll(() => two.left).toEqual([`/${second}/events`]);
  });

  test("an upload without a length passes", async () => {
    const name = await nameOf(one);
    const parts = Array.from({ length: 8 }, () => new Uint8Array(MIB / 8));
    const init: object = { method: "POST", body: ReadableStream.from(parts), duplex: "half" };
    const answer = await fetch(`${router.url}/${name}`, init);
    expect(await answer.json()).toEqual({ cell: "1", bytes: MIB, encoding: "chunked" });
  });

  test("case 20: server-sent events arrive one by one, and end when the client leaves", async () => {
    const name = await nameOf(one);
    const client = new AbortController();
    const answer = await fetch(`${router.url}/${name}/events`, { signal: client.signal });
    const reader = (answer.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
    expect((await reader.read()).value).toBe("data: 1\n\n");
    expect((await reader.read()).value).toBe("data: 2\n\n");
    // workerd notices that the client has left when it sends the next event.
    client.abort();
    await expect.poll(() => one.left).toEqual([`/${name}/events`]);
  });

  test("case 20: a client that leaves before the answer ends its request at the cell", async () => {
    const name = await nameOf(one);
    const { hostname, port, host } = new URL(router.url);
    const client = connect(Number(port), hostname);
    client.write(`GET /${name}/hang HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await expect.poll(() => one.arrived).toEqual([`GET /${name}/hang 0`]);
    // workerd notices a lost connection before it answers, but not one that the client has only half closed.
    client.resetAndDestroy();
    await expect.poll(() => one.left).toEqual([`/${name}/hang`]);
  });

  test("case 20: long polls wait for their answers at the same time", async () => {
    const name = await nameOf(one);
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => (await fetch(`${router.url}/${name}/late`)).text()),
    );
    expect(answers).toEqual(Array.from({ length: 50 }, () => "late"));
  });

  test("case 20: a WebSocket passes in both directions, and its end reaches the cell", async () => {
    const name = await nameOf(one);
    const socket = new WebSocket(`${router.url.replace("http", "ws")}/${name}/socket`);
    await once(socket, "open");
    for (const text of ["first", "second"]) {
      socket.send(text);
      const [message] = (await once(socket, "message")) as [MessageEvent];
      expect(message.data).toBe(text);
    }
    socket.close();
    await expect.poll(() => one.left).toEqual([`/${name}/socket`]);
  });

  test("an early 413 reaches a client that sends 50 MB", async () => {
    const name = await nameOf(one);
    const { status, body } = await upload(`/${name}/too-large`, 50 * MIB);
    expect([status, body]).toEqual([413, "too large"]);
  });
});

describe("a cell that does not have the name", () => {
  test("case 19: a GET is healed in one hop, and the next one needs none", async () => {
    const name = await movedName();
    const answer = await fetch(`${router.url}/${name}`);
    expect(await answer.json()).toMatchObject({ cell: "2" });
    expect(one.arrived).toEqual([`GET /${name} 0`]);
    expect(two.arrived).toEqual([`GET /${name} 1`]);
    await fetch(`${router.url}/${name}`);
    expect([one.arrived.length, two.arrived.at(-1)]).toEqual([1, `GET /${name} 0`]);
  });

  test("case 19: a WebSocket is healed in one hop", async () => {
    const name = await movedName();
    const socket = new WebSocket(`${router.url.replace("http", "ws")}/${name}/socket`);
    await once(socket, "open");
    expect(two.arrived).toEqual([`GET /${name}/socket 1`]);
    socket.close();
    await expect.poll(() => two.left).toEqual([`/${name}/socket`]);
  });

  test("case 19: a POST with a body gets 307, and arrives once", async () => {
    const name = await movedName();
    const post = (cookie: string): Promise<Response> =>
      fetch(`${router.url}/${name}`, {
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
    const answer = await fetch(`${router.url}/${name}`);
    expect([answer.status, answer.headers.has("retry-after")]).toEqual([503, true]);
    expect(one.arrived).toEqual([`GET /${name} 0`]);
    expect(two.arrived).toEqual([`GET /${name} 1`]);
  });

  test.each([
    ["a browser", browser, 307],
    ["a client without cookies", {}, 503],
  ])("case 19: a 421 reaches %s that sends 50 MB", async (_, headers, expected) => {
    const name = await movedName();
    const { status } = await upload(`/${name}`, 50 * MIB, headers);
    expect(status).toBe(expected);
    expect([one.arrived, two.arrived]).toEqual([[`PUT /${name} 0`], []]);
  });
});

describe("the router's own paths", () => {
  test("everybody may ask for its health, and only the holder of the key for its metrics", async () => {
    const health = await fetch(`${router.url}/-/router/health`);
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
    const metrics = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${router.url}/-/router/metrics`, { headers });
    expect((await metrics({})).status).toBe(401);
    expect((await metrics({ authorization: "Bearer wrong" })).status).toBe(401);
    const answer = await metrics({ authorization: `Bearer ${METRICS_KEY}` });
    expect(answer.status).toBe(200);
    const text = await answer.text();
    expect(text).toMatch(/# EOF\n$/);
    for (const name of [
      "route_total",
      "route_misdirected_total",
      "proxy_requests_total",
      "proxy_refused_total",
    ])
      expect(text).toContain(name);
    for (const path of ["/-/router/", "/-/router/other"])
      expect((await fetch(`${router.url}${path}`)).status).toBe(404);
    const posted = await fetch(`${router.url}/-/router/health`, { method: "POST" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });

  test("no line of output has a key or a name", () => {
    const output = `${router.stdout}${router.stderr}`;
    for (const secret of ["key-of-a-router", METRICS_KEY, "name-"]) expect(output).not.toContain(secret);
  });
});

test("without a coordinator, it starts one and two cells, and Ctrl-C stops everything", async () => {
  const alone = await new RouterProcess(await freePort()).ready();
  const parts = [...alone.stdout.matchAll(/http:\/\/127\.0\.0\.1:\d+/g)].map(([url]) => url);
  expect(new Set(parts).size).toBe(4);
  for (const [path, cell] of [
    ["/ada", "1"],
    ["/ADA/settings", "1"],
    ["/grace", "2"],
    ["/", "1"],
  ]) {
    const answer = await fetch(`${alone.url}${path}`);
    expect([answer.status, answer.headers.get("leasehold-cell")], path).toEqual([200, cell]);
    expect(await answer.text()).toContain(`Cell ${cell}: `);
  }
  expect((await fetch(`${alone.url}/nobody`)).status).toBe(404);
  expect(await alone.end("SIGINT")).toMatchObject({ code: 0 });
  for (const url of parts) await expect(fetch(url)).rejects.toThrow();
});

test("a wrong option or variable causes a one-line error before anything is started", async () => {
  const key = { LEASEHOLD_KEY: "key-of-a-router" };
  const given = ["--coordinator", coordinatorUrl];
  const rules = join(import.meta.dirname, "router.test.ts");
  const cases: [string[], Record<string, string>, RegExp][] = [
    [["--port", "0"], {}, /^leasehold: --port must be a whole number from 1 to 65535\n$/],
    [given, { LEASEHOLD_KEY: "" }, /^leasehold: LEASEHOLD_KEY is missing; .*\n$/],
    [
      ["--coordinator", "http://example.com"],
      key,
      /^leasehold: LEASEHOLD_URL must be the https address .*\n$/,
    ],
    [["--key", "x"], {}, /^leasehold: --key needs --coordinator; .*\n$/],
    [[...given, "--rules", rules], key, /^leasehold: .*router\.test\.ts is not a JSON document\n$/],
    [[...given, "--rules", `${rules}x`], key, /^leasehold: .*router\.test\.tsx cannot be read \(ENOENT\)\n$/],
    [given, { ...key, ROUTER_SHARED_CACHE: "yes" }, /^leasehold: ROUTER_SHARED_CACHE must be on or off\n$/],
    [given, { ...key, ROUTER_TRACE_SHARE: "2" }, /^leasehold: ROUTER_TRACE_SHARE must be a share .*\n$/],
    [
      given,
      { ...key, ROUTER_BOUND_MS: "-1" },
      /^leasehold: ROUTER_BOUND_MS must be a whole number from .*\n$/,
    ],
    [
      given,
      { ...key, ROUTER_METRICS_KEY: "short" },
      /^leasehold: ROUTER_METRICS_KEY must have at least 32 .*\n$/,
    ],
  ];
  const port = await freePort();
  const ended = await Promise.all(
    cases.map(([args, variables]) => new RouterProcess(port, args, variables).ended),
  );
  for (const [index, [, , line]] of cases.entries())
    expect(ended[index]).toEqual({ code: 1, stderr: expect.stringMatching(line) as unknown });
  const busy = await new RouterProcess(Number(new URL(router.url).port), given, key).ended;
  expect(busy).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^leasehold: port \d+ is in use; set --port to another port\n$/) as unknown,
  });
});

test("the local router has the same settings as its wrangler.toml", () => {
  const at = (path: string): string => readFileSync(join(import.meta.dirname, "../../..", path), "utf8");
  const [toml, local] = [at("router/wrangler.toml"), at("scripts/router-worker.ts")];
  const date = /^compatibility_date = "(.*)"$/m.exec(toml)?.[1];
  const flags = /^compatibility_flags = (\[.*\])$/m.exec(toml)?.[1];
  expect(local).toContain(`compatibilityDate: "${date}"`);
  expect(local).toContain(`compatibilityFlags: ${flags}`);
});
