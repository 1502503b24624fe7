/** `leasehold grpc` as a process, in front of a coordinator. */
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { Authority } from "../../hosts/grpc/certificates.ts";
import { callBytes } from "../../hosts/grpc/native-transport.ts";
import { inSlice } from "../../support/slice.ts";
import { serveFiles } from "../../hosts/standalone/served.ts";

const program = join(import.meta.dirname, "../../../scripts/leasehold.mjs");
const env = { ...process.env, LEASEHOLD_URL: "", LEASEHOLD_KEY: "", XDG_CONFIG_HOME: "/nonexistent" };
const GET_CELLS = "/gitlab.cells.topology_service.ClassifyService/GetCells";

const run = (...args: string[]) =>
  spawnSync(process.execPath, [program, "grpc", ...args], { env, encoding: "utf8" });

test("it serves gRPC over mTLS for a deployment, without a key of its own, until SIGTERM", async () => {
  const served = await serveFiles(["1"], {});
  const authority = new Authority();
  onTestFinished(async () => {
    authority.close();
    await served.close();
  });
  const server = authority.issue("bridge", { sans: ["DNS:localhost"] });
  const own = authority.issue("cell 1", { sans: ["DNS:cell-1.test"] });
  const port = await freePort();
  const tls = ["--cert", server.certFile, "--key", server.keyFile, "--client-ca", authority.certFile];
  const child = spawn(
    process.execPath,
    [program, "grpc", "--url", served.url, "--port", String(port), "--jsonl", ...tls],
    { env, stdio: ["ignore", "pipe", "inherit"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  expect(JSON.parse(line)).toEqual({
    address: `127.0.0.1:${port}`,
    coordinator_url: served.url,
    tls: true,
    client_certificates: "required",
    identities: "keys",
  });
  const client = new Client(`localhost:${port}`, credentials.createSsl(authority.cert, own.key, own.cert));
  onTestFinished(() => client.close());
  const metadata = { authorization: `Bearer ${served.keys.router}` };
  expect(await callBytes(client, GET_CELLS, new Uint8Array(), { metadata })).toBeInstanceOf(Buffer);
  const nobody = await callBytes(client, GET_CELLS, new Uint8Array()).catch((error: ServiceError) => error);
  expect(nobody).toMatchObject({ code: 16 });
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

test("what is wrong is said before anything is served", async () => {
  const url = "http://127.0.0.1:9";
  const mistakes: [args: string[], sentence: string][] = [
    [[], "set LEASEHOLD_URL"],
    [["--url", url, "--client-ca", "ca.pem"], "--client-ca needs --cert and --key"],
    [["--url", url, "--cert", "a.pem"], "--cert needs --key"],
    [
      ["--url", url, "--cert", "/nonexistent", "--key", "/nonexistent"],
      "--cert names /nonexistent, which cannot be read (ENOENT)",
    ],
  ];
  for (const [args, sentence] of inSlice(mistakes, mistakes.length))
    expect(run(...args)).toMatchObject({ status: 2, stderr: expect.stringContaining(sentence) });
  const blocker = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void blocker.close());
  await once(blocker, "listening");
  const { port } = blocker.address() as AddressInfo;
  expect(run("--url", url, "--port", String(port))).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(`port ${port} is in use`),
  });
});
