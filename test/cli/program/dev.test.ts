/** `leasehold dev` as a process, with its state, its context and its signals. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { checkNode } from "../../../src/cli/dev/start-server.ts";

import { newHome } from "./dev-home.ts";

test("it keeps its state, and a second start continues", async () => {
  const home = newHome();
  const port = String(await freePort());
  const first = await home.dev("--port", port, "--seed", "5");
  expect(first.ready).toMatchObject({ first_start: true, context: "dev", seeded: 5 });
  expect(first.ready.state).toBe(join(home.folder, ".leasehold"));
  expect(statSync(first.ready.keys_file).mode & 0o777).toBe(0o600);
  const keys = JSON.parse(readFileSync(first.ready.keys_file, "utf8")) as { cells: object };
  expect(Object.keys(keys.cells)).toEqual(["1", "2", "3"]);
  expect(home.contexts).toMatchObject({ current: "dev", contexts: { dev: { url: first.ready.url } } });
  expect(home.run("lookup", "SEED-00005", "--type", "USERNAMES").status).toBe(0);

  const other = home.run("dev", "--port", port, "--state", "other");
  expect(other.status).toBe(1);
  expect(other.stderr).toContain(`leasehold: port ${port} is in use\nNext: leasehold dev --port `);
  const same = home.run("dev", "--port", String(await freePort()));
  expect(same.stderr).toContain("is in use by process");
  expect(same.stderr).toContain("Next: leasehold dev --state FOLDER\n");

  const stopped = await first.stop("SIGINT");
  expect(stopped.code).toBe(0);
  expect(first.line + stopped.err).not.toContain("lhk_");
  const second = await home.dev("--port", port, "--seed", "6");
  expect(second.ready).toMatchObject({ first_start: false, seeded: 1 });
  expect((await second.stop("SIGTERM")).code).toBe(0);
});

test("mistakes are named before anything is started, and a wrong seed stops it", async () => {
  const home = newHome();
  expect(home.run("dev", "--url", "http://127.0.0.1:1")).toMatchObject({ status: 2 });
  expect(home.run("dev", "--types", "none.json").stderr).toContain("--types: none.json cannot be read");
  expect(home.run("dev", "--temporary", "--state", "a").status).toBe(2);
  writeFileSync(
    join(home.folder, "names.ndjson"),
    '{"bucket":{"type":"USERNAMES","value":"a"}}\n\n' +
      '{"bucket":{"type":"USERNAMES","value":"b"},"cell_id":"7"}\n',
  );
  const port = String(await freePort());
  const wrong = home.run("dev", "--temporary", "--no-save", "--port", port, "--seed", "names.ndjson");
  expect(wrong).toMatchObject({ status: 2, stdout: "" });
  expect(wrong.stderr).toContain("--seed: line 3 of names.ndjson: `cell_id` must be one of");
  expect(existsSync(join(home.folder, "leasehold/config.json"))).toBe(false);
});

test("an older Node is told which one is needed", () => {
  expect(() => checkNode("20.19.0")).toThrow(/needs Node 22\.16 or newer.*this is Node 20\.19\.0/);
  expect(() => checkNode("22.15.9")).toThrow();
  for (const version of ["22.16.0", "24.0.0"]) expect(() => checkNode(version)).not.toThrow();
});
