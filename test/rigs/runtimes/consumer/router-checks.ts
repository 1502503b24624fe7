/** What a router must do on every runtime. It needs `fetch` and the packed SDK, and nothing else. */
import {
  compileRuleset,
  createProxy,
  createRoutes,
  type Proxy,
  type RouteAnswer,
  type Routes,
} from "leasehold/router";

/** The servers that the checks need. `POST control/move/NAME/CELL` gives a name to a cell. */
export interface Routed {
  /** The coordinator. */
  url: string;
  key: string;
  control: string;
}

/** What a cell answers. */
export interface Echo {
  cell: string;
  method: string;
  url: string;
  hops: string;
  bytes: number;
  cookie?: string | undefined;
}

/** Sends a request to a proxy: over HTTP if the runtime has a server, and as a call if it has none. */
type Send = (path: string, init?: RequestInit) => Promise<Response>;

/** Serves the proxy, and returns how requests reach it. */
export type ServeProxy = (proxy: Proxy) => ServedProxy | Promise<ServedProxy>;

export interface ServedProxy {
  send: Send;
  stop: () => Promise<void>;
}

/** A check that has not succeeded after this time has failed. */
const PATIENCE_MS = 60_000;
const MIB = 2 ** 20;

/** Runs all checks, and returns what they have checked. Throws an error that says what is wrong. */
export async function checkRouter(routed: Routed, serve: ServeProxy): Promise<string> {
  for (const name of ["ada", "grace", "joan", "mary"]) await move(routed, name, "1");
  await checkLookups(routed);
  await checkReports(routed);
  // It remembers wrong answers for long enough to be refused by a cell.
  const routes = createRoutes({ ...coordinatorOf(routed), reports: false, maxAgeMs: 60_000 });
  const match = { type: "path", pattern: "/:name/*" };
  const names = { type: "ROUTES", value: "${name}" };
  const ruleset = compileRuleset([{ id: "names", match, action: "classify", classify: names }]);
  const { send, stop } = await serve(createProxy({ routes, ruleset, allowLocalHttp: true }));
  await checkForwarding(send);
  await checkHealing(routed, routes, send);
  await checkAbort(routed, send);
  await stop();
  routes.close();
  return "memory, reports, findMany, GET, POST, 421, abort";
}

const coordinatorOf = ({ url, key }: Routed): { url: string; key: string } => ({ url, key });

async function move({ control }: Routed, name: string, cell: string): Promise<void> {
  const { ok } = await fetch(`${control}/move/${name}/${cell}`, { method: "POST" });
  isEqual("a move", ok, true);
}

const nameOf = (value: string) => ({ type: "ROUTES", value });

async function checkLookups(routed: Routed): Promise<void> {
  const routes = createRoutes({ ...coordinatorOf(routed), reports: false });
  const layersOf = async (name: string): Promise<string> => summaryOf(await routes.find(nameOf(name)));
  isEqual("the first lookup", await layersOf("ada"), "1 by coordinator");
  isEqual("the second lookup", await layersOf("ada"), "1 by memory");
  isEqual("a free name", await layersOf("nobody"), "none");
  const names = ["grace", "ada", "nobody", "a\u0000b"].map(nameOf);
  const answers = (await routes.findMany(names)).map(summaryOf);
  isEqual("many names", answers.join(), "1 by coordinator,1 by memory,none,invalid");
  isEqual("the cells", [...(await routes.cells()).keys()].join(), "1,2");
  routes.close();
}

const summaryOf = (answer: RouteAnswer): string =>
  answer.kind === "found" ? `${answer.cell.id} by ${answer.layer}` : answer.kind;

/** Only a report lets this router use what it remembers, and shows it that a name has moved. */
async function checkReports(routed: Routed): Promise<void> {
  let keys = 0;
  const onReport = (report: { keys: number }): void => void (keys += report.keys);
  const routes = createRoutes({ ...coordinatorOf(routed), maxAgeMs: 0, hooks: { onReport } });
  const summary = async (): Promise<string> => summaryOf(await routes.find(nameOf("joan")));
  await until("an answer that a report has proved", async () => (await summary()) === "1 by memory");
  await move(routed, "joan", "2");
  await until("the new cell", async () => (await summary()).startsWith("2 "));
  isEqual("the keys in reports", keys > 0, true);
  routes.close();
}

async function checkForwarding(send: Send): Promise<void> {
  const answer = await send("/ada/page?a=b", { headers: { cookie: "a=1; Leasehold-Position=0:1" } });
  const expected = { cell: "1", method: "GET", url: "/ada/page?a=b", hops: "0", bytes: 0, cookie: "a=1" };
  isEqual("a GET", JSON.stringify(await answer.json()), JSON.stringify(expected));
  const compressed = (await (await send("/ada/gzip")).json()) as Echo;
  isEqual("a compressed answer", compressed.url, "/ada/gzip");
  const chunk = new Uint8Array(MIB / 16);
  let left = 16;
  const body = new ReadableStream<Uint8Array>({
    pull: (stream) => ((left -= 1) < 0 ? stream.close() : stream.enqueue(chunk)),
  });
  const streamed: object = { method: "POST", body, duplex: "half" };
  const posted = (await (await send("/ada", streamed)).json()) as Echo;
  isEqual("a POST", `${posted.method} ${posted.bytes}`, `POST ${MIB}`);
  isEqual("a free name", (await send("/nobody")).status, 404);
}

async function checkHealing(routed: Routed, routes: Routes, send: Send): Promise<void> {
  for (const name of ["grace", "mary"]) {
    await routes.find(nameOf(name));
    await move(routed, name, "2");
  }
  const healed = (await (await send("/grace")).json()) as Echo;
  isEqual("a GET that the first cell has refused", `${healed.cell} after ${healed.hops}`, "2 after 1");
  const init: RequestInit = { method: "POST", body: "order", headers: { cookie: "a=1" }, redirect: "manual" };
  const sentBack = await send("/mary", init);
  isEqual("a POST that a cell has refused", sentBack.status, 307);
  const cookie = sentBack.headers.getSetCookie().map((each) => each.split(";")[0]);
  const again = (await (
    await send("/mary", { ...init, headers: { cookie: cookie.join("; ") } })
  ).json()) as Echo;
  isEqual("the same POST again", `${again.cell} ${again.bytes}`, "2 5");
}

async function checkAbort({ control }: Routed, send: Send): Promise<void> {
  const client = new AbortController();
  const answer = send("/ada/hang", { signal: client.signal }).then(
    ({ status }) => status,
    () => 499,
  );
  await new Promise((resume) => setTimeout(resume, 500));
  client.abort();
  isEqual("a request that the client ends", await answer, 499);
  const hasLeft = async (): Promise<boolean> => (await (await fetch(control)).text()) === '["ada"]';
  await until("the end of the request at the cell", hasLeft);
}

async function until(what: string, isDone: () => Promise<boolean>): Promise<void> {
  const startMs = Date.now();
  while (!(await isDone())) {
    if (Date.now() - startMs > PATIENCE_MS) throw new Error(`${what} has not come within ${PATIENCE_MS} ms`);
    await new Promise((resume) => setTimeout(resume, 50));
  }
}

function isEqual(what: string, actual: unknown, expected: unknown): void {
  if (actual !== expected)
    throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}
