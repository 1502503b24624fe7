/** What is deployed: the modules of the Worker, and what an isolate runs at its start. */
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parseSync } from "oxc-parser";
import { afterAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { buildWorker, bundle, workerEntry, type WorkerModule } from "../../scripts/bundle.ts";
import { withoutSignalHandlers, workerdWrapper } from "../../scripts/workerd.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "worker-bundle-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The size of what an isolate runs at its start, with gzip. It was 453 kB when this bound was set. */
const START_BYTES = 475_000;
/** How much of that the protobuf wire may cost those who don't use it. */
const WIRE_BYTES = 5 * 1024;

/** The main module and those that it imports statically. */
function startModules(modules: readonly WorkerModule[]): WorkerModule[] {
  const byPath = new Map(modules.map((module) => [`./${module.path}`, module]));
  const found = new Set<WorkerModule>();
  const add = (module: WorkerModule | undefined): void => {
    if (module === undefined || found.has(module)) return;
    found.add(module);
    const { staticImports, staticExports } = parseSync(module.path, module.contents).module;
    const reexports = staticExports.flatMap(({ entries }) => entries.map((entry) => entry.moduleRequest));
    for (const request of [...staticImports.map((one) => one.moduleRequest), ...reexports])
      if (request !== null) add(byPath.get(request.value));
  };
  add(modules[0]);
  return [...found];
}

const gzipBytes = (modules: readonly WorkerModule[]): number =>
  gzipSync(modules.map(({ contents }) => contents).join("")).length;

const built = join(folder, "built");
await buildWorker(built);
const moduleAt = (path: string): WorkerModule => {
  return { type: "ESModule", path, contents: readFileSync(join(built, path), "utf8") };
};
const names = readdirSync(built).filter((name) => name.endsWith(".js"));
const modules = ["index.js", ...names.filter((name) => name !== "index.js")].map(moduleAt);
const atStart = startModules(modules);

test("an isolate runs at most 475 kB at its start, with gzip", () => {
  expect(atStart.length).toBeGreaterThan(0);
  expect(gzipBytes(atStart)).toBeLessThanOrEqual(START_BYTES);
});

test("the wire adds at most 5 KiB to what an isolate runs at its start, with gzip", async () => {
  const whole = await bundle(workerEntry);
  const withoutWire = await bundle(workerEntry, ["../wire/serve-wire.ts"]);
  expect(gzipBytes(whole) - gzipBytes(withoutWire)).toBeGreaterThan(WIRE_BYTES);
  const growth = gzipBytes(startModules(whole)) - gzipBytes(startModules(withoutWire));
  expect(growth).toBeLessThanOrEqual(WIRE_BYTES);
});

test("the wire, the console, the docs and their libraries are in modules that run at their first use", () => {
  const startNames = new Set(atStart.map(({ path }) => path));
  const sourcesOf = (paths: readonly string[]): string[] =>
    paths.flatMap((path) => {
      const map = JSON.parse(readFileSync(join(built, `${path}.map`), "utf8")) as { sources: string[] };
      return map.sources;
    });
  const lazy = sourcesOf(names.filter((name) => !startNames.has(name)));
  const started = sourcesOf(names.filter((name) => startNames.has(name)));
  const parts = [
    "src/wire",
    "src/console",
    "src/http/docs",
    "src/auth/certificates",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "@peculiar/asn1-x509",
    "jose",
  ];
  for (const part of parts) {
    const inPart = (source: string): boolean => source.includes(`/${part}/`);
    expect(lazy.filter(inPart), part).not.toEqual([]);
    expect(started.filter(inPart), part).toEqual([]);
  }
});

test("a Worker answers the other routes without the modules that run at their first use", async () => {
  process.env["MINIFLARE_WORKERD_PATH"] ??= workerdWrapper();
  const broken = modules.map((module) =>
    atStart.includes(module) ? module : { ...module, contents: 'throw new Error("this module was run");' },
  );
  const lines: string[] = [];
  const miniflare = withoutSignalHandlers(
    () =>
      new Miniflare(
        convertV4MiniflareOptions({
          host: "127.0.0.1",
          port: 0,
          // Otherwise Miniflare would ask a server of Cloudflare where this machine is.
          cf: false,
          handleStructuredLogs: ({ message }) => lines.push(message),
          modules: broken,
          compatibilityDate: "2026-10-01",
          bindings: { LEASEHOLD_SHARDS: "4", LEASEHOLD_SIGNING_SECRET: "s".repeat(32) },
        }),
      ),
  );
  const statusOf = async (path: string): Promise<number> => {
    const answer = await miniflare.dispatchFetch(`http://127.0.0.1${path}`);
    await answer.text();
    return answer.status;
  };
  try {
    expect([await statusOf("/healthz"), await statusOf("/")]).toEqual([200, 200]);
    const lazy = ["/console", "/grpc/any.Service/Any", "/docs", "/openapi.json"];
    expect(await Promise.all(lazy.map(statusOf))).toEqual([500, 500, 500, 500]);
    const failed = (): string[] => lines.filter((line) => line.includes("this module was run"));
    await expect.poll(failed).toHaveLength(lazy.length);
  } finally {
    await miniflare.dispose();
  }
});

test("`npm run build` uploads these modules, with the classes of the objects in the main one", () => {
  const outdir = join(folder, "upload");
  const [command = "", ...words] = manifest.scripts.build.split(" ");
  const env = {
    ...process.env,
    LEASEHOLD_SIGNING_SECRET: "signing-secret-of-the-tests-and-of-nothing-else",
    WRANGLER_SEND_METRICS: "false",
  };
  execFileSync(join(root, "node_modules/.bin", command), [...words, "--outdir", outdir], {
    cwd: root,
    env,
    stdio: "pipe",
  });
  const uploaded = readdirSync(outdir).filter((name) => /\.(js|map)$/.test(name));
  expect(uploaded.toSorted()).toEqual(names.toSorted());
  for (const { path, contents } of modules)
    expect(readFileSync(join(outdir, path), "utf8") === contents, path).toBe(true);
  const main = parseSync("index.js", readFileSync(join(outdir, "index.js"), "utf8")).module;
  const exported = main.staticExports.flatMap(({ entries }) =>
    entries.map(({ exportName }) => exportName.name ?? "default"),
  );
  const toml = readFileSync(join(root, "wrangler.toml"), "utf8");
  const classes = [...toml.matchAll(/^class_name = "(\w+)"$/gm)].map(([, name]) => name);
  expect(exported.toSorted()).toEqual([...classes, "default"].toSorted());
});
