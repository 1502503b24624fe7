/** What `leasehold grpc` sends to a coordinator about the certificates of its clients, over real TLS. */
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { bridgedCertificateOf } from "../../../src/coordinator/api/authenticate.ts";
import { Hmac } from "../../../src/coordinator/auth/secrets.ts";
import { makeKey } from "../../../src/coordinator/auth/key.ts";
import type { Role } from "../../../src/coordinator/kernel/role.ts";
import { Authority, derOf } from "../../hosts/grpc/certificates.ts";
import { callBytes } from "../../hosts/grpc/native-transport.ts";
import { inSlice } from "../../support/slice.ts";

const program = join(import.meta.dirname, "../../../scripts/leasehold.mjs");
const GET_CELLS = "/gitlab.cells.topology_service.ClassifyService/GetCells";

const keyOf = (role: Role): Promise<string> => {
  const iat = Math.floor(Date.now() / 1_000);
  return makeKey({ v: 1, id: `a-${role}`, role, iat, exp: iat + 3_600 }, new Hmac("a secret of these tests"));
};

const authority = new Authority();
const own = authority.issue("cell 1", { sans: ["DNS:cell-1.test"] });
const server = authority.issue("bridge", { sans: ["DNS:localhost"] });

/** Stands for a coordinator, and records the headers of each call. */
let coordinator: Server;
let url: string;
const received: Headers[] = [];
beforeAll(async () => {
  coordinator = createServer((request, response) => {
    received.push(new Headers(request.headers as Record<string, string>));
    const headers = { "content-type": "application/grpc-web+proto", "grpc-status": "16" };
    response.writeHead(200, headers).end();
  }).listen(0, "127.0.0.1");
  await once(coordinator, "listening");
  url = `http://127.0.0.1:${(coordinator.address() as AddressInfo).port}`;
});
afterAll(() => {
  coordinator.close();
  authority.close();
});

interface Started {
  call: (metadata?: Record<string, string>) => Promise<Headers>;
  facts: Record<string, unknown>;
  /** Ends the program, and returns everything that it has printed. */
  end: () => Promise<string>;
}

async function start(
  variables: Record<string, string>,
  more: readonly string[] = ["--url", url],
): Promise<Started> {
  const port = await freePort();
  const tls = ["--cert", server.certFile, "--key", server.keyFile, "--client-ca", authority.certFile];
  const child = spawn(
    process.execPath,
    [program, "grpc", "--port", String(port), "--jsonl", ...tls, ...more],
    {
      env: {
        ...process.env,
        LEASEHOLD_URL: "",
        LEASEHOLD_KEY: "",
        XDG_CONFIG_HOME: "/nonexistent",
        ...variables,
      },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines: string[] = [];
  const reader = createInterface(child.stdout);
  reader.on("line", (line) => lines.push(line));
  const errors = text(child.stderr);
  await once(reader, "line");
  const client = new Client(`localhost:${port}`, credentials.createSsl(authority.cert, own.key, own.cert));
  onTestFinished(() => client.close());
  return {
    facts: JSON.parse(lines[0] ?? "") as Record<string, unknown>,
    call: async (metadata = {}) => {
      received.length = 0;
      const error = await callBytes(client, GET_CELLS, new Uint8Array(), { metadata }).catch(
        (failed: ServiceError) => failed,
      );
      expect(error).toMatchObject({ code: 16 });
      expect(received).toHaveLength(1);
      return received[0] ?? new Headers();
    },
    end: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      return `${lines.join("\n")}${await errors}`;
    },
  };
}

const certificateIn = (headers: Headers): string | undefined => {
  const found = bridgedCertificateOf(headers.get("client-cert") ?? undefined);
  return found.ok && found.value !== undefined ? Buffer.from(found.value).toString("base64") : undefined;
};
const ownDer = derOf(own.cert).toString("base64");

test("[A4] with a bridge key, only a call without a key is sent with it and the certificate", async () => {
  const key = await keyOf("bridge");
  const { call, facts, end } = await start({ LEASEHOLD_KEY: key });
  expect(facts).toMatchObject({ client_certificates: "required", identities: "keys or certificates" });
  const headers = await call();
  expect(headers.get("authorization")).toBe(`Bearer ${key}`);
  expect(certificateIn(headers)).toBe(ownDer);
  // The client's own word is not passed on.
  expect(certificateIn(await call({ "client-cert": ":AAAA:" }))).toBe(ownDer);
  // A call with a key of its own is sent with this key alone.
  const authorization = "Bearer lhk_own.key";
  const alone = await call({ authorization, "client-cert": ":AAAA:" });
  expect([alone.get("authorization"), alone.get("client-cert")]).toEqual([authorization, null]);
  expect(await end()).not.toContain(key.slice(4, 40));
});

const ROLES = ["operator", "cell", "router", undefined] as const;
test.each(inSlice(ROLES, ROLES.length))(
  "[A4] a key of the role %s is never sent, and neither is a certificate",
  async (role) => {
    const { call, facts } = await start({ LEASEHOLD_KEY: role === undefined ? "" : await keyOf(role) });
    expect(facts).toMatchObject({ client_certificates: "required", identities: "keys" });
    const headers = await call({ "client-cert": ":AAAA:" });
    expect([headers.get("authorization"), headers.get("client-cert")]).toEqual([null, null]);
  },
);

test("the key may be that of a context, which is sent to no other URL", async () => {
  const home = mkdtempSync(join(tmpdir(), "grpc-contexts-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const folder = join(home, "leasehold");
  mkdirSync(folder, { mode: 0o700 });
  const file = join(folder, "config.json");
  const key = await keyOf("bridge");
  const variables = { XDG_CONFIG_HOME: home };
  const save = (saved: string): void => {
    writeFileSync(file, JSON.stringify({ current: "a", contexts: { a: { url: saved, key } } }));
    chmodSync(file, 0o600);
  };
  save(url);
  for (const more of inSlice([["--url", url], ["--context", "a"], []], 3)) {
    const { call } = await start(variables, more);
    expect((await call()).get("authorization")).toBe(`Bearer ${key}`);
  }
  save("https://other.example.com");
  const { call } = await start(variables);
  expect((await call()).get("authorization")).toBeNull();
});
