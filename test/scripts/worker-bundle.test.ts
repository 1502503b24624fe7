/** What is deployed: the modules of the Worker, and what an isolate runs at its start. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parseSync } from "oxc-parser";
import { afterAll, expect, test } from "vitest";
import { bundle, workerEntry, type WorkerModule } from "../../scripts/bundle.ts";
import { builtWorker, startModules } from "./built-worker.ts";

const root = join(import.meta.dirname, "../..");

/** The size of what an isolate runs at its start, with gzip. It was 479 kB when this bound was set. */
const START_BYTES = 490_000;
/** How much of that the protobuf wire may cost those who don't use it. */
const WIRE_BYTES = 5 * 1024;

const gzipBytes = (modules: readonly WorkerModule[]): number =>
  gzipSync(modules.map(({ contents }) => contents).join("")).length;

const { folder, modules } = await builtWorker();
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const names = modules.map(({ path }) => path);
const atStart = startModules(modules);

test("an isolate runs at most 490 kB at its start, with gzip", () => {
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
      const map = JSON.parse(readFileSync(join(folder, `${path}.map`), "utf8")) as { sources: string[] };
      return map.sources;
    });
  const lazy = sourcesOf(names.filter((name) => !startNames.has(name)));
  const started = sourcesOf(names.filter((name) => startNames.has(name)));
  const parts = [
    "src/coordinator/wire",
    "src/coordinator/console",
    "src/coordinator/api/docs",
    "src/coordinator/auth/certificates",
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

test("the main module exports the handlers and the classes of wrangler.toml", () => {
  const main = parseSync("index.js", modules[0]?.contents ?? "").module;
  const exported = main.staticExports.flatMap(({ entries }) =>
    entries.map(({ exportName }) => exportName.name ?? "default"),
  );
  const toml = readFileSync(join(root, "wrangler.toml"), "utf8");
  const classes = [...toml.matchAll(/^class_name = "(\w+)"$/gm)].map(([, name]) => name);
  expect(exported.toSorted()).toEqual([...classes, "default"].toSorted());
});
