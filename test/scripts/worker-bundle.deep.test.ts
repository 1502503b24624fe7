/** The modules of the Worker as they run, and as they are uploaded. worker-bundle.test.ts has their sizes. */
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { withoutSignalHandlers, workerdWrapper } from "../../src/hosts/workerd/workerd.ts";
import { builtWorker, startModules } from "./built-worker.ts";

const root = join(import.meta.dirname, "../..");
const { folder, modules } = await builtWorker();
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const atStart = startModules(modules);

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

test("`npm run build` uploads these modules", () => {
  const outdir = join(folder, "upload");
  const names = modules.map(({ path }) => path);
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
});
