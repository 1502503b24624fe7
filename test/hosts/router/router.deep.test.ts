/** More of `npm run router`: large streams in little memory, cells that move, its own cells, its options. */
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { browser, MIB, useRouter } from "./router-rig.ts";
import { RouterProcess } from "./router-process.ts";
import { TestCell } from "./test-cell.ts";

const rig = useRouter();
const { coordinator, one, two, nameOf, movedName, upload } = rig;

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
    expect((await fetch(`${rig.router.url}/${name}`)).status).toBe(502);
    // The router reads the addresses in the background. By itself, it would do so after 30 s.
    const status = async (): Promise<number> => (await fetch(`${rig.router.url}/${name}`)).status;
    await expect.poll(status, { timeout: 25_000 }).toBe(200);
    expect(coordinator.asked).toBe(asked);
  } finally {
    await moved.stop();
    coordinator.addresses.delete("5");
  }
});

describe("streams", () => {
  /** Returns the result, and by how much the memory of the router grew meanwhile, in bytes. */
  async function growthDuring<Result>(work: () => Promise<Result>): Promise<[Result, number]> {
    const before = rig.router.memoryBytes();
    let highest = before;
    const sampling = setInterval(() => (highest = Math.max(highest, rig.router.memoryBytes())), 20);
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
    const socket = new WebSocket(`${rig.router.url.replace("http", "ws")}/${first}/socket`);
    await once(socket, "open");
    const client = new AbortController();
    const events = await fetch(`${rig.router.url}/${second}/events`, { signal: client.signal });
    const reader = (events.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await upload(`/${first}`, 10 * MIB);

    const [answers, growth] = await growthDuring(async () => {
      const uploads = [first, second].map((name) => upload(`/${name}`, 100 * MIB));
      socket.send("meanwhile");
      two.tell();
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
    await expect.poll(() => two.tell().left).toEqual([`/${second}/events`]);
  });

  test("case 20: long polls wait for their answers at the same time", async () => {
    const name = await nameOf(one);
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => (await fetch(`${rig.router.url}/${name}/late`)).text()),
    );
    expect(answers).toEqual(Array.from({ length: 50 }, () => "late"));
  });

  test("an early 413 reaches a client that sends 50 MB", async () => {
    const name = await nameOf(one);
    const { status, body } = await upload(`/${name}/too-large`, 50 * MIB);
    expect([status, body]).toEqual([413, "too large"]);
  });
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
  const given = ["--coordinator", "http://127.0.0.1:9"];
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
  const busy = await new RouterProcess(Number(new URL(rig.router.url).port), given, key).ended;
  expect(busy).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^leasehold: port \d+ is in use; set --port to another port\n$/) as unknown,
  });
});
