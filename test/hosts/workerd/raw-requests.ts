/** Odd requests to a local server, over raw sockets, reach nothing that their path doesn't name. */
import { connect } from "node:net";
import { expect, test } from "vitest";
import type { scripts, Server } from "./server.ts";

interface Answer {
  status: number;
  body: string;
}

export function rawRequestTests(script: keyof typeof scripts, server: () => Server): void {
  const port = (): number => Number(new URL(server().url).port);

  /** Sends exactly these lines, and reads one answer. */
  function send(...lines: string[]): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const socket = connect(port(), "127.0.0.1", () => socket.write(`${lines.join("\r\n")}\r\n\r\n`));
      let received = "";
      const finish = (): void => {
        const [head = "", body = ""] = received.split(/\r\n\r\n(.*)/s);
        const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? Infinity);
        if (Buffer.byteLength(body) < length && !socket.closed) return;
        resolve({ status: Number(head.split(" ")[1]), body });
        socket.destroy();
      };
      socket.on("data", (data) => {
        received += data.toString();
        if (received.includes("\r\n\r\n")) finish();
      });
      socket.once("close", finish);
      socket.once("error", reject);
    });
  }

  const host = (): string => `Host: 127.0.0.1:${port()}`;
  const get = (path: string, ...headers: string[]): Promise<Answer> =>
    send(`GET ${path} HTTP/1.1`, host(), ...headers);
  const healthy = { status: 200, body: expect.stringContaining('"status":"ok"') as unknown };
  const unknownRoute = { status: 404, body: expect.stringContaining('"ROUTE_UNKNOWN"') as unknown };

  test("no header of Miniflare has a meaning", async () => {
    expect(await get("/healthz")).toMatchObject(healthy);
    for (const header of [
      `MF-Original-URL: ${server().url}/openapi.json`,
      "MF-Original-URL: no url",
      "MF-CF-Blob: no json",
      "MF-Route-Override: another",
      "MF-Proxy-Shared-Secret: guessed",
      "MF-Custom-Fetch-Service: another",
      "MF-Op: GET",
      "X-Forwarded-Proto: https",
    ])
      expect(await get("/healthz", header), header).toMatchObject(healthy);
    for (const path of ["/cdn-cgi/local/scheduled", "/cdn-cgi/handler/scheduled", "/cdn-cgi/local/explorer"])
      expect(await get(path, "MF-Op: GET"), path).toMatchObject(unknownRoute);
  });

  test("[A4] no header makes a client certificate one that Cloudflare has verified", async () => {
    // A certificate of this form would be refused with a detail of its own.
    const tlsClientAuth = { certPresented: "1", certVerified: "SUCCESS", certRFC9440: "no certificate" };
    const cf = JSON.stringify({ tlsClientAuth });
    for (const header of [`MF-CF-Blob: ${cf}`, `CF-Blob: ${cf}`, "Client-Cert: :AAAA:"])
      expect(await get("/v1/limits", header), header).toMatchObject({
        status: 401,
        body: expect.stringContaining("The key is missing") as unknown,
      });
  });

  test("CONNECT opens no tunnel and calls no handler", async () => {
    const refused =
      script === "start"
        ? { status: 500, body: "Internal Server Error" }
        : { status: 405, body: expect.stringContaining('"INVALID_ARGUMENT"') as unknown };
    for (const target of ["miniflare-unsafe-internal-capnp-connect", "example.com:80", `127.0.0.1:${port()}`])
      expect(await send(`CONNECT ${target} HTTP/1.1`, `Host: ${target}`), target).toMatchObject(refused);
    expect(await get("/healthz")).toMatchObject(healthy);
  });

  test("a `Host` that is missing, double or not a host is refused, and replaces no path", async () => {
    const path = "GET /healthz HTTP/1.1";
    expect(await send(path)).toMatchObject({ status: 400 });
    const refused = { status: 400, body: expect.stringContaining('"field":"Host"') as unknown };
    for (const wrong of ["127.0.0.1/openapi.json?", "127.0.0.1/openapi.json#", "no host", "a@b", "a\\b"])
      expect(await send(path, `Host: ${wrong}`), wrong).toMatchObject(refused);
    expect(await send(path, host(), host())).toMatchObject(refused);
    expect(await send(path, host(), "Host: other")).toMatchObject(refused);
    for (const good of ["localhost", "[::1]:8787", "names.example.com", "xn--bcher-kva.example"])
      expect(await send(path, `Host: ${good}`), good).toMatchObject(healthy);
  });

  test("dots in a path, encoded or not, leave out no segment", async () => {
    for (const path of [
      "/x/../healthz",
      "/x/%2E%2E/healthz",
      "/%2e/healthz",
      "/v1/..%2Fhealthz",
      "//healthz",
    ])
      expect(await get(path), path).toMatchObject(unknownRoute);
    const key = (role: string): string => `Authorization: Bearer ${role}`;
    const { router, cells } = server().keys;
    // The dots arrive at the lookup, which refuses them as a name.
    const found = await get("/v1/records/ROUTES/%2E%2E", key(router));
    expect(found).toMatchObject({ status: 400, body: expect.stringContaining('"field":"value"') as unknown });
    // The key of cell 1 reaches no other cell by way of its own.
    for (const path of [
      "/v1/cells/1/../2/leases",
      "/v1/cells/1/%2E%2E/2/leases",
      "/v1/cells/1%2F..%2F2/leases",
    ])
      expect([403, 404], path).toContain((await get(path, key(cells["1"] ?? ""))).status);
  });
}
