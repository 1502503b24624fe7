/** More of `npm run standalone` as a process: its state folder, its options, and what ends it. */
import { spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { DATABASE } from "../../../src/hosts/standalone/database-file.ts";
import { dropPart, PROJECTION } from "../../../src/hosts/standalone/parts.ts";
import { leaseId, oneName, Server } from "../workerd/server.ts";
import { begin, commit, lookUp, useStandalone, type Start } from "./standalone-servers.ts";

const { folder, servers, start, ready, copyBundle, failingDisk, endsAtDiskFailure } = useStandalone();
const root = join(import.meta.dirname, "../../..");

test("a projection whose tables are deleted is filled again", async () => {
  const server = await ready({ state: "no-projection" });
  await begin(server, 1, "early");
  await server.end("SIGTERM");
  const database = new DatabaseSync(join(folder, "no-projection/databases", DATABASE));
  dropPart(database, PROJECTION);
  database.close();
  const again = await ready({ state: "no-projection" });
  const { body } = await again.call(server.keys.operator, "GET", "/v1/admin/keys");
  expect(body["keys"]).toHaveLength(6);
  expect(again.stderr).not.toContain("history_lost");
  expect((await commit(again, 1)).status).toBe(200);
  await again.end("SIGTERM");
});

test("a stop ends requests whose callers have left, and is no failure of the disk", async () => {
  for (let round = 0; round < 5; round += 1) {
    const server = await ready({ state: "left" });
    const { keys } = server;
    const headers = { authorization: `Bearer ${keys.cells["1"]}`, "content-type": "application/json" };
    const leaving = new AbortController();
    const calls = Array.from({ length: 100 }, (_, n) =>
      fetch(`${server.url}/v1/cells/1/leases/${leaseId(round * 100 + n)}`, {
        method: "PUT",
        headers,
        body: JSON.stringify(oneName(`left-${round}-${n}`)),
        signal: leaving.signal,
      }).catch(() => undefined),
    );
    await Promise.race(calls);
    leaving.abort();
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  }
});

test("the cron runs before the first request, and fills the projection", async () => {
  const server = await ready({ state: "cron" });
  // The requests of the set-up are not logged.
  expect(server.stderr).toMatch(/^{"event":"cron_run"/);
  const stale = await server.call(server.keys.operator, "GET", "/v1/leases/stale");
  expect(stale).toMatchObject({ status: 200, body: { leases: [] } });
  await server.end("SIGTERM");
});

describe("a start is refused with one line", () => {
  const refusal = async (options: Start): Promise<string> => {
    const { code, stderr } = await (await start(options)).ended;
    const lines = stderr.split("\n").filter((line) => !line.startsWith("{"));
    expect([code, lines.length], stderr).toEqual([1, 2]);
    return stderr;
  };

  test("if the port or a variable is wrong, or an option is", async () => {
    const listener = createServer();
    await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
    const address = listener.address();
    const used = typeof address === "object" && address !== null ? address.port : 0;
    expect(await refusal({ state: "wrong", port: used })).toMatch(/port \d+ is in use; set PORT to another/);
    expect(await refusal({ state: "wrong", port: 0 })).toMatch(/PORT must be a whole number from 1 to 65535/);
    expect(await refusal({ state: "wrong", variables: { LEASEHOLD_STALE_S: "abc" } })).toMatch(
      /LEASEHOLD_STALE_S must be a whole number of s/,
    );
    for (const [args, line] of [
      [["--cert", "a"], /--cert needs --key/],
      [["--key", "a"], /--key needs --cert/],
      [
        ["--cert", "/no/cert", "--key", "/no/key"],
        /--cert names \/no\/cert, which cannot be read \(ENOENT\)/,
      ],
      [["--client-ca", "a"], /--client-ca needs --cert and --key/],
      [["--types", "/no/types"], /\/no\/types cannot be read/],
      [["--host", "256.1.1.1"], /--host/],
      [["--host", ""], /--host needs a value/],
      [["--backup", ""], /--backup needs a value/],
      [["--unknown"], /--unknown/],
    ] as const)
      expect(await refusal({ state: "wrong", args }), args.join(" ")).toMatch(line);
    listener.close();
  });

  test("if the folder is not of a server, or has another number of shards", async () => {
    const foreign = join(folder, "foreign");
    mkdirSync(join(foreign, "storage"), { recursive: true });
    expect(await refusal({ state: "foreign" })).toMatch(/foreign has no state\.json, so its state is older/);
    await (await ready({ state: "versions", variables: { LEASEHOLD_SHARDS: "2" } })).end("SIGTERM");
    expect(await refusal({ state: "versions", variables: { LEASEHOLD_SHARDS: "3" } })).toMatch(
      /LEASEHOLD_SHARDS is 3, but the deployment has 2 shards; .* `leasehold shards grow`/,
    );
  });

  test("if the database is damaged", async () => {
    await (await ready({ state: "damaged" })).end("SIGTERM");
    const file = join(folder, "damaged/databases", DATABASE);
    const whole = readFileSync(file);
    writeFileSync(file, whole.subarray(0, whole.length - 4_096));
    expect(await refusal({ state: "damaged" })).toMatch(/databases\/leasehold\.sqlite is damaged/);
    writeFileSync(file, whole);
    const server = await ready({ state: "damaged" });
    await server.end("SIGTERM");
  });
});

test("a folder that has lost all of its databases is refused", async () => {
  await (await ready({ state: "emptied" })).end("SIGTERM");
  rmSync(join(folder, "emptied/databases"), { recursive: true });
  const { code, stderr } = await (await start({ state: "emptied" })).ended;
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining("has no databases, though the folder has been used"),
  ]);
});

test("`npm start` refuses the folder", async () => {
  await (await ready({ state: "of-standalone" })).end("SIGTERM");
  const other = new Server(await freePort(), join(folder, "of-standalone"), { LEASEHOLD_SHARDS: "1" });
  servers.push(other);
  expect(await other.ended).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^leasehold: .*of-standalone is a folder of `npm run standalone`.*\n$/,
    ) as unknown,
  });
});

test("`npm run copy-state` leaves the folder to --backup", async () => {
  const env = { ...process.env, LEASEHOLD_STATE: join(folder, "of-standalone") };
  const args = ["src/hosts/workerd/copy-state.ts", "--to", join(folder, "elsewhere")];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: "utf8" });
  expect([status, stderr]).toEqual([1, expect.stringContaining("which copies it with --backup")]);
});

test("a bundle that is removed while the server runs doesn't end it", async () => {
  const bundle = copyBundle("removed");
  const program = join(bundle, "main.mjs");
  const server = new Server(await freePort(), join(folder, "long"), {}, [], "standalone", program);
  servers.push(server);
  await server.ready();
  rmSync(bundle, { recursive: true });
  // The log of the cell gets long enough for a checkpoint.
  for (let from = 0; from < 700; from += 2) {
    const leases = Array.from({ length: 2 }, async (_, n) => {
      const { status } = await begin(server, from + n, `long-${from + n}`);
      return [status, (await commit(server, from + n)).status];
    });
    expect(new Set((await Promise.all(leases)).flat())).toEqual(new Set([201, 200]));
  }
  await server.end("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining("checkpoint") });
});

test("--help prints the options", async () => {
  const { code } = await (await start({ args: ["--help"] })).ended;
  expect([code, servers.at(-1)?.stdout]).toEqual([0, expect.stringContaining("--cert <path>")]);
});

test("--types declares the types, and --cert and --key turn on TLS", async () => {
  const [cert, key, types] = ["cert.pem", "key.pem", "types.json"].map((name) => join(folder, name));
  const made = spawnSync("openssl", [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost".split(" "),
    "-keyout",
    key ?? "",
    "-out",
    cert ?? "",
  ]);
  expect(made.status, String(made.stderr)).toBe(0);
  const otherKey = join(folder, "other-key.pem");
  writeFileSync(
    otherKey,
    generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  );
  for (const [certFile, keyFile, line] of [
    [key, key, /--cert names .*key\.pem, which has no certificate in PEM/],
    [cert, cert, /--key names .*cert\.pem, which has no private key in PEM without a passphrase/],
    [cert, otherKey, /--key names .*other-key\.pem, which is not the key of the first certificate in .*cert/],
  ] as const) {
    const args = ["--cert", certFile ?? "", "--key", keyFile ?? ""];
    const { code, stderr } = await (await start({ state: "tls", args })).ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(line)]);
  }
  writeFileSync(
    types ?? "",
    JSON.stringify({
      bucket_types: { COLORS: { number: 1, case: "exact" } },
      subject_types: { PERSON: { number: 1 } },
      source_types: { PAINTS: { number: 1 } },
    }),
  );
  const server = await start({
    state: "tls",
    args: ["--cert", cert ?? "", "--key", key ?? "", "--types", types ?? ""],
  });
  await expect.poll(() => server.stdout + server.stderr).toContain("is ready at https://127.0.0.1:");
  const url = server.url.replace("http:", "https:");
  const agent = new Agent({ ca: readFileSync(cert ?? ""), checkServerIdentity: () => undefined });
  const headers = { authorization: `Bearer ${server.keys.operator}` };
  const body = await new Promise<string>((resolve, reject) =>
    request(`${url}/v1/admin/types`, { agent, headers }, (answer) => {
      let text = "";
      answer.on("data", (data: Buffer) => (text += data.toString())).on("end", () => resolve(text));
    })
      .once("error", reject)
      .end(),
  );
  expect(body).toContain('"COLORS"');
  agent.destroy();
  expect((await server.end("SIGTERM")).code).toBe(0);
});

test("a full disk ends the process", async () => {
  await endsAtDiskFailure("f", /leasehold\.sqlite: the disk is full \(SQLite/);
});

test("a start without room for its files names the folder", async () => {
  const library = failingDisk();
  const full = join(folder, "full");
  writeFileSync(full, "w");
  const { code, stderr } = await (
    await start({ state: "no-room", variables: { LD_PRELOAD: library, FAILING_DISK_FILE: full } })
  ).ended;
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /^leasehold: the state folder .*no-room cannot be read or written \(ENOSPC\); fix its permissions/,
    ),
  ]);
});

test("a folder that is copied while nothing writes to it starts once an operator says so", async () => {
  const server = await ready({ state: "copied" });
  await begin(server, 1, "kept");
  await commit(server, 1);
  process.kill(server.pid, "SIGSTOP");
  cpSync(join(folder, "copied"), join(folder, "copy"), { recursive: true });
  process.kill(server.pid, "SIGCONT");
  await server.end("SIGTERM");
  const refused = await (await start({ state: "copy" })).ended;
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("add --trust-copy if nothing")]);
  const found = { status: 200, body: { record: { status: "ACTIVE" } } };
  let copy = await ready({ state: "copy", args: ["--trust-copy"] });
  expect(await lookUp(copy, "kept")).toMatchObject(found);
  await copy.end("SIGKILL");
  copy = await ready({ state: "copy" });
  expect(await lookUp(copy, "kept")).toMatchObject(found);
  await copy.end("SIGTERM");
  // The copy of a stopped server's folder needs no trust.
  cpSync(join(folder, "copied"), join(folder, "of-stopped"), { recursive: true });
  const stopped = await ready({ state: "of-stopped" });
  expect(await lookUp(stopped, "kept")).toMatchObject(found);
  await stopped.end("SIGTERM");
});
