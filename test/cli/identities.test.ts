/** `leasehold identities`, against a real coordinator. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { startCommandLine, type CommandLine } from "./command-line.ts";
import { Authority } from "../hosts/grpc/certificates.ts";

const issuer = {
  name: "forge",
  issuer: "https://forge.example",
  audience: "leasehold",
  algorithms: ["RS256"],
  jwks_url: "https://forge.example/keys",
  rules: [{ claims: { sub: "deployer" }, role: "operator" }],
};

let line: CommandLine;
let file: string;

beforeEach(async () => {
  line = await startCommandLine();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-identities-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  file = join(folder, "identities.json");
});

const write = (document: unknown): void => writeFileSync(file, JSON.stringify(document));

test("plan shows what would change, apply does it, and show prints it as a file", async () => {
  write({ issuers: [issuer] });
  const planned = await line.run(["identities", "plan", "--file", file]);
  expect(planned).toMatchObject({ code: 10, out: expect.stringContaining("+ issuers.forge") as unknown });
  const args = ["identities", "apply", "--file", file, "--reason", "a test"];
  expect(await line.run([...args, "--dry-run"])).toMatchObject({ code: 0 });
  expect(await line.run(["identities", "plan", "--file", file])).toMatchObject({ code: 10 });
  expect(await line.run([...args, "--yes"])).toMatchObject({ code: 0 });
  expect(await line.run(["identities", "plan", "--file", file])).toMatchObject({ code: 0 });
  const shown = await line.run(["identities", "show"]);
  expect(JSON.parse(shown.out)).toEqual({ issuers: [issuer], authorities: [] });
  writeFileSync(file, shown.out);
  expect(await line.run(["identities", "plan", "--file", file])).toMatchObject({ code: 0 });
  write({ issuers: [] });
  const removed = await line.run(["identities", "plan", "--file", file]);
  expect(removed.out).toContain("- issuers.forge");
});

test("an authority's certificate may be in a file of its own, beside the file", async () => {
  const authority = new Authority();
  onTestFinished(() => authority.close());
  copyFileSync(authority.certFile, join(file, "../ca.pem"));
  const rules = [{ dns: "ops.example", role: "operator" }];
  write({ authorities: [{ name: "ours", certificate_file: "ca.pem", rules }] });
  const args = ["identities", "apply", "--file", file, "--reason", "a test", "--yes"];
  expect(await line.run(args)).toMatchObject({ code: 0 });
  const shown = await line.run(["identities", "show"]);
  expect(JSON.parse(shown.out)).toEqual({
    issuers: [],
    authorities: [{ name: "ours", certificate: readFileSync(join(file, "../ca.pem"), "utf8"), rules }],
  });
  expect(shown.err).toMatch(/authority ours expires at 20\d\d-/);
});

test("the private key of an authority is not sent to the deployment", async () => {
  const authority = new Authority();
  onTestFinished(() => authority.close());
  const both = readFileSync(authority.certFile, "utf8") + readFileSync(authority.keyFile, "utf8");
  writeFileSync(join(file, "../ca.pem"), both);
  write({ authorities: [{ name: "ours", certificate_file: "ca.pem", rules: [] }] });
  const { code, err } = await line.run(["identities", "plan", "--file", file]);
  expect([code, err]).toEqual([
    2,
    expect.stringMatching(/`certificate_file` names ca\.pem, which has a private key/),
  ]);
  write({ authorities: [{ name: "ours", certificate: both, rules: [] }] });
  const inline = await line.run(["identities", "plan", "--file", file]);
  expect([inline.code, inline.err]).toEqual([2, expect.stringContaining("`certificate` has a private key")]);
});

test.each([
  ["a file that is not there", undefined, "cannot be read"],
  ["a list", [], "must be an object with the lists"],
  ["an unknown list", { issuer: [] }, "must be an object with the lists"],
  ["a certificate that is not there", { authorities: [{ certificate_file: "no.pem" }] }, "certificate_file"],
  ["a wrong field", { issuers: [{ ...issuer, audience: 1 }] }, "issuers[0].audience"],
])("%s is refused, and nothing is changed", async (_, document, sentence) => {
  if (document !== undefined) write(document);
  const args = ["identities", "apply", "--file", file, "--reason", "a test", "--yes"];
  const { code, err } = await line.run(args);
  expect([code, err]).toEqual([2, expect.stringContaining(sentence)]);
  expect(JSON.parse((await line.run(["identities", "show"])).out)).toEqual({ issuers: [], authorities: [] });
});

test("explain says who a certificate is, and which id revokes it", async () => {
  const authority = new Authority();
  onTestFinished(() => authority.close());
  const { certFile, keyFile } = authority.issue("an operator", { sans: ["DNS:ops.example"] });
  const rules = [{ dns: "ops.example", role: "operator" }];
  write({ authorities: [{ name: "ours", certificate: authority.cert.toString(), rules }] });
  const unknown = await line.run(["identities", "explain", "--certificate", certFile]);
  expect(unknown).toMatchObject({ code: 0, out: expect.stringContaining("No authority") as unknown });
  await line.run(["identities", "apply", "--file", file, "--reason", "a test", "--yes"]);
  const { out, err } = await line.run(["identities", "explain", "--certificate", certFile]);
  const [id = ""] = /[\da-f]{8}-[\da-f-]{27}/.exec(out) ?? [];
  expect(out).toContain("operator");
  expect(err).toContain(`leasehold keys revoke ${id} --reason TEXT`);
  await line.run(["keys", "revoke", id, "--reason", "a test", "--yes"]);
  const revoked = await line.run(["identities", "explain", "--certificate", certFile, "--json"]);
  expect(JSON.parse(revoked.out)).toMatchObject({ id, role: "operator", refusal: "It is revoked." });
  const subject = ["--issuer", "https://forge.example", "--subject", "deployer"];
  expect(await line.run(["identities", "explain", ...subject])).toMatchObject({ code: 0 });
  for (const wrong of [[], ["--issuer", "x"], ["--certificate", keyFile], ["--certificate", "no.pem"]])
    expect(await line.run(["identities", "explain", ...wrong])).toMatchObject({ code: 2 });
});
