/** `leasehold keys`. */
import { readFileSync } from "node:fs";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, onTestFinished, test, vi } from "vitest";
import { Authority } from "../hosts/grpc/certificates.ts";
import { spoil, startCommandLine, type CommandLine, type Ran } from "./command-line.ts";

const idOf = ({ err }: Ran): string => /^Key (\S+) is valid/m.exec(err)?.[1] ?? "";

const asKey = (line: CommandLine, key: string): Promise<Ran> =>
  line.run(["api", "GET", "/v1/cells/1/leases"], { env: { LEASEHOLD_KEY: key.trim() } });

test("mint prints the key alone, and the key works", async () => {
  const line = await startCommandLine();
  const mint = ["keys", "mint", "--role", "cell", "--cell", "1", "--note", "web"];
  expect((await line.run([...mint, "--dry-run"])).out).toBe("");
  expect((await line.run(["keys", "mint", "--role", "cell"])).err).toContain("--cell is required");
  expect((await line.run(["keys", "mint", "--role", "router", "--cell", "1"])).err).toContain(
    "--cell is only",
  );
  expect(line.sent).toEqual([]);
  const minted = await line.run([...mint, "--expires-in", "30d"]);
  expect(minted.out).toMatch(/^lhk_[\w.-]+\n$/);
  expect(minted.err).not.toContain("lhk_");
  expect((await asKey(line, minted.out)).code).toBe(0);
  const { credentials } = await line.json(["keys", "ls", "--cell", "1"]);
  expect(credentials).toMatchObject([{ kind: "key", id: idOf(minted), name: "web", role: "cell" }]);
  expect(JSON.stringify(credentials)).not.toContain("lhk_");
});

test("ls shows which keys expire soon, and offers to rotate one", async () => {
  const line = await startCommandLine();
  await line.run(["keys", "mint", "--role", "router", "--expires-in", "400d"]);
  const soon = idOf(await line.run(["keys", "mint", "--role", "router", "--expires-in", "2d"]));
  const list = ["keys", "ls", "--role", "router", "--expires-in", "3d"];
  const { credentials, next_steps: steps } = await line.json(list);
  expect(credentials).toMatchObject([{ id: soon }]);
  expect(steps).toEqual([`leasehold keys rotate ${soon}`]);
});

test("revoke needs a reason and the end of the id", async () => {
  const line = await startCommandLine();
  const minted = await line.run(["keys", "mint", "--role", "cell", "--cell", "1"]);
  const id = idOf(minted);
  line.sent.length = 0;
  const revoke = ["keys", "revoke", id];
  expect((await line.run([...revoke, "--yes"])).code).toBe(2);
  expect((await line.run(["keys", "revoke", minted.out.trim(), "--reason", "x", "--yes"])).code).toBe(2);
  expect(line.sent).toEqual([]);
  expect((await line.run([...revoke, "--reason", "leaked"], { answers: ["yes"] })).code).toBe(2);
  expect((await line.run([...revoke, "--dry-run"])).out).toContain(`Would revoke key ${id}.`);
  expect(line.changes).toEqual([]);
  const done = await line.run([...revoke, "--reason", "leaked"], { answers: [id.slice(-8)] });
  expect(done).toMatchObject({
    code: 0,
    out: expect.stringContaining(`Revoked key ${id}. It is a key of cell 1.`),
  });
  expect((await asKey(line, minted.out)).code).toBe(5);
  line.sent.length = 0;
  expect((await line.run([...revoke, "--reason", "leaked", "--yes"])).out).toContain("Nothing was changed.");
  expect(line.changes).toEqual([]);
});

test("revoke with another cell corrects that of a key that was made offline", async () => {
  const line = await startCommandLine();
  const id = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";
  const revoke = ["keys", "revoke", id, "--reason", "leaked", "--yes"];
  expect((await line.run([...revoke, "--cell", "1"])).code).toBe(0);
  expect((await line.run([...revoke, "--cell", "2"])).out).toContain(`Revoked key ${id}.`);
  const { credentials } = await line.json(["keys", "ls", "--role", "cell"]);
  expect(credentials).toMatchObject([{ id, cell_id: "2" }]);
  line.sent.length = 0;
  expect((await line.run([...revoke, "--cell", "2"])).out).toContain("Nothing was changed.");
  expect(line.changes).toEqual([]);
});

test("rotate makes the same key anew, and the old one works until it is revoked", async () => {
  const line = await startCommandLine();
  const mint = ["keys", "mint", "--role", "cell", "--cell", "1", "--note", "web", "--expires-in", "7d"];
  const old = await line.run(mint);
  const fresh = await line.run(["keys", "rotate", idOf(old)]);
  expect(fresh.out).toMatch(/^lhk_[\w.-]+\n$/);
  expect(fresh.err).toContain(`Next: leasehold keys revoke ${idOf(old)} --reason`);
  for (const key of [old.out, fresh.out]) expect((await asKey(line, key)).code).toBe(0);
  const { credentials } = await line.json(["keys", "ls", "--cell", "1"]);
  const keys = credentials as Record<string, string>[];
  const lifetimes = keys.map(
    ({ created_at: from = "", expires_at: to = "" }) => Date.parse(to) - Date.parse(from),
  );
  expect(lifetimes).toEqual([7 * 86_400_000, 7 * 86_400_000]);
  expect(keys.map(({ name }) => name)).toEqual(["web", "web"]);
  expect((await line.run(["keys", "rotate", "nothing"])).code).toBe(4);
});

test("rotate --expires-in gives the new key another lifetime", async () => {
  const line = await startCommandLine();
  const old = idOf(await line.run(["keys", "mint", "--role", "router", "--expires-in", "1h"]));
  const rotate = ["keys", "rotate", old, "--expires-in", "90d"];
  expect((await line.run([...rotate, "--dry-run"])).err).toContain(
    "Would make a key of the role router, valid for 90d.",
  );
  expect((await line.run(rotate)).code).toBe(0);
  const { credentials } = await line.json(["keys", "ls", "--role", "router", "--expires-in", "400d"]);
  const lifetimes = (credentials as Record<string, string>[]).map(
    ({ created_at: from = "", expires_at: to = "" }) => Date.parse(to) - Date.parse(from),
  );
  expect(lifetimes).toEqual([3_600_000, 90 * 86_400_000]);
});

test.each(["operator", "viewer", "router", "scraper", "bridge"])(
  "revoking a key of the role %s mentions no cell",
  async (role) => {
    const line = await startCommandLine();
    const mint = ["keys", "mint", "--role", role];
    const [first, last] = [idOf(await line.run(mint)), idOf(await line.run(mint))];
    const revoke = (id: string): Promise<Ran> =>
      line.run(["keys", "revoke", id, "--reason", "old"], { answers: [id.slice(-8)] });
    const { err, out, asked } = await revoke(first);
    expect(out).toBe(`Revoked key ${first}. It is a key of the role ${role}.\n`);
    expect(`${asked[0]}${err}`).not.toContain("lease");
    // Another key of this role is valid.
    expect(err).toBe("It is refused within 30 seconds. There is no undo.\n");
    const isService = role !== "operator" && role !== "viewer";
    expect((await revoke(last)).err).toBe(
      `${err}${isService ? `Next: leasehold keys mint --role ${role}\n` : ""}`,
    );
  },
);

test("a key in the place of its id is neither sent nor shown", async () => {
  const line = await startCommandLine();
  const key = (await line.run(["keys", "mint", "--role", "router"])).out.trim();
  line.sent.length = 0;
  for (const args of [
    ["keys", "revoke", key, "--reason", "x", "--yes"],
    ["keys", "rotate", key],
    ["audit", "--key", key],
    ["audit", "--target", key],
  ])
    for (const format of [[], ["--json"]]) {
      const { code, out, err } = await line.run([...args, ...format]);
      expect([args[0], code]).toEqual([args[0], 2]);
      expect(`${out}${err}`).not.toContain(key);
    }
  expect(line.sent).toEqual([]);
});

test("ls lists authorities, issuers and subjects of tokens beside keys, with their last use", async () => {
  const line = await startCommandLine();
  const authority = new Authority();
  onTestFinished(() => authority.close());
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const { kty, crv, x, y } = await exportJWK(publicKey);
  const forge = {
    name: "forge",
    issuer: "https://forge.example",
    audience: "leasehold",
    algorithms: ["ES256"],
    keys: [{ kty, crv, x, y, kid: "1" }],
    rules: [{ claims: { ref: "main" }, role: "viewer" }],
  };
  const rules = [{ dns: "cell-1.example", role: "cell", cell_id: "1" }];
  const certificate = readFileSync(authority.certFile, "utf8");
  const authorities = [{ name: "cells", certificate, rules }];
  const declare = async (version: number, issuers: object[]): Promise<number> => {
    const body = JSON.stringify({ version, issuers, authorities });
    const put = ["api", "PUT", "/v1/admin/identities", "--data", body, "--reason", "a test", "--yes"];
    return ((await line.json(put))["body"] as { version: number }).version;
  };
  const version = await declare(0, [forge]);
  const token = await new SignJWT({ ref: "main", sub: "job", iss: forge.issuer, aud: "leasehold" })
    .setProtectedHeader({ alg: "ES256", kid: "1" })
    .setIssuedAt()
    .setExpirationTime("5m")
    .sign(privateKey);
  const asJob = { env: { LEASEHOLD_KEY: token } };
  expect((await line.run(["api", "GET", "/v1/admin/cells"], asJob)).code).toBe(0);

  const hour = expect.stringMatching(/T\d\d:00:00\.000Z$/) as unknown;
  const list = async (...args: string[]) => (await line.json(["keys", "ls", ...args]))["credentials"];
  expect(await list("--kind", "authority")).toMatchObject([{ name: "cells", state: "VALID", id: null }]);
  expect(await list("--kind", "issuer")).toMatchObject([{ name: "forge", state: "VALID" }]);
  const used = { kind: "token", role: "viewer", name: "job", issued_by: "forge", last_used_at: hour };
  await vi.waitFor(async () =>
    expect(await list("--kind", "token")).toMatchObject([{ ...used, state: "VALID", expires_at: null }]),
  );
  // The operator key was made offline, and appears once it was used.
  expect(await list("--role", "operator")).toMatchObject([
    { kind: "key", state: "VALID", last_used_at: hour },
  ]);
  // It cannot be rotated here, because nothing but its uses is known of it.
  expect((await line.run(["keys", "ls", "--kind", "key", "--expires-in", "400d"])).err).not.toContain(
    "rotate",
  );
  expect(await line.client().keys.uses({ ids: [] }).all()).toEqual([]);
  const table = await line.run(["keys", "ls"]);
  expect(table.out).toMatch(/^token .*T\d\d:00 +forge +job *$/m);

  await declare(version, []);
  expect(await list("--kind", "token")).toMatchObject([{ ...used, state: "NOT_ACCEPTED" }]);
  const [subject] = (await list("--kind", "token")) as { id: string }[];
  const revoke = ["keys", "revoke", subject?.id ?? "", "--reason", "done", "--yes"];
  expect((await line.run(revoke)).code).toBe(0);
  expect(await list()).toContainEqual(expect.objectContaining({ ...used, state: "REVOKED" }));
  expect(await list("--kind", "key")).not.toContainEqual(expect.objectContaining({ id: subject?.id }));
});

test("ls lists the keys if D1 can't be read, and says what is missing", async () => {
  const line = await startCommandLine();
  await line.run(["keys", "mint", "--role", "router"]);
  const problem = { status: 503, headers: { "content-type": "application/problem+json" } };
  spoil(line, "/v1/admin/credential-uses", () => new Response('{"code":"UNAVAILABLE"}', problem));
  const listed = await line.run(["keys", "ls", "--json"]);
  expect(listed).toMatchObject({ code: 6, err: expect.stringContaining("can't be read now") as unknown });
  const { credentials } = JSON.parse(listed.out) as { credentials: object[] };
  expect(credentials).toMatchObject([{ kind: "key", role: "router" }]);
  expect(credentials[0]).not.toHaveProperty("last_used_at");
});
