/** `leasehold dev --temporary`: its state and its context. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";

import { newHome } from "./dev-home.ts";

test("a temporary one leaves nothing behind, and does not replace the context of another URL", async () => {
  const home = newHome();
  const port = String(await freePort());
  const first = await home.dev("--port", port, "--temporary");
  expect(home.contexts.contexts).toHaveProperty("dev");
  expect((await first.stop("SIGINT")).code).toBe(0);
  expect(existsSync(first.ready.state)).toBe(false);
  expect(home.contexts).toEqual({ current: null, contexts: {} });

  const dev = { url: "https://leasehold.example.com", key: "lhk_a.b" };
  const saved = { current: "dev", contexts: { dev } };
  writeFileSync(join(home.folder, "leasehold/config.json"), JSON.stringify(saved), { mode: 0o600 });
  const second = await home.dev("--port", port, "--temporary");
  expect(second.ready.context).toBe(null);
  expect((await second.stop("SIGINT")).err).toContain("was kept: give another name with --save-as");
  expect(home.contexts).toEqual(saved);

  const kept = { current: "dev", contexts: { dev: { url: first.ready.url, key: "lhk_c.d" } } };
  writeFileSync(join(home.folder, "leasehold/config.json"), JSON.stringify(kept), { mode: 0o600 });
  const third = await home.dev("--port", port, "--temporary");
  expect(third.ready.context).toBe("dev");
  expect(home.contexts).not.toEqual(kept);
  expect((await third.stop("SIGINT")).code).toBe(0);
  expect(home.contexts).toEqual(kept);
});
