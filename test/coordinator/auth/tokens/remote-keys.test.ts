/** The keys that are read from an issuer. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../src/hosts/workerd/free-port.ts";
import { RemoteKeys, IssuerKeys } from "../../../../src/coordinator/auth/tokens/remote-keys.ts";
import { TokenVerifier } from "../../../../src/coordinator/auth/tokens/token-verifier.ts";
import { defaultLimits } from "../../../../src/common/limits.ts";
import {
  ec,
  identitiesOf,
  issuerOf,
  KeyServer,
  NOW_MS,
  NOW_S,
  other,
  rsa,
  sign,
  TestTimers,
} from "./test-issuer.ts";
import { privateField } from "../../../support/private-fields.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** A verifier of the tokens of one issuer, whose keys the server has. */
async function start(...keys: unknown[]) {
  const server = await KeyServer.start(...keys);
  const timers = new TestTimers();
  const lines: object[] = [];
  const verifier = new TokenVerifier(defaultLimits, timers, (event, fields) => {
    lines.push({ event, ...fields });
  });
  const identities = identitiesOf(issuerOf({ keys: null, jwksUrl: server.url }));
  const check = async (token: string, afterMs = 0): Promise<string> => {
    const verified = await verifier.verify(token, identities, NOW_MS + afterMs);
    return verified.ok ? "ok" : verified.refusal.code;
  };
  return { server, timers, check, lines };
}

/** Valid for two days, so that only the keys decide. */
const lasting = (pair = ec): Promise<string> => sign({ exp: NOW_S + 2 * 86_400 }, pair);

test("[A4] keys rotate without a gap, and old tokens are valid until their key is removed", async () => {
  const { server, check } = await start(ec.jwk);
  const old = await lasting();
  expect(await check(old)).toBe("ok");
  server.keys = [ec.jwk, other.jwk];
  const rotated = await lasting(other);
  expect(await check(rotated, MINUTE_MS)).toBe("ok");
  expect([await check(old, MINUTE_MS), server.reads]).toEqual(["ok", 2]);
  server.keys = [other.jwk];
  expect(await check(old, 10 * MINUTE_MS)).toBe("ok");
  expect(await check(old, 11 * MINUTE_MS)).toBe("UNAUTHENTICATED");
  expect([await check(rotated, 11 * MINUTE_MS), server.reads]).toEqual(["ok", 3]);
});

test("[A4] a key that is replaced under its name no longer counts, also for remembered tokens", async () => {
  const { server, check } = await start(ec.jwk);
  const token = await lasting();
  expect(await check(token)).toBe("ok");
  server.keys = [{ ...other.jwk, kid: "ec" }];
  expect(await check(token, 10 * MINUTE_MS)).toBe("UNAUTHENTICATED");
});

test("keys are fresh for 10 minutes, and remembered tokens don't extend that", async () => {
  const { server, check } = await start(ec.jwk);
  const token = await lasting();
  for (const afterMs of [0, MINUTE_MS, 10 * MINUTE_MS - 1]) expect(await check(token, afterMs)).toBe("ok");
  expect(server.reads).toBe(1);
  expect([await check(token, 10 * MINUTE_MS), server.reads]).toEqual(["ok", 2]);
  // The clock was set back.
  expect([await check(token, -MINUTE_MS), server.reads]).toEqual(["ok", 3]);
});

test("keys are read again for an unknown one, but at most every 30 seconds", async () => {
  const { server, check } = await start(ec.jwk);
  const unknown = await lasting(other);
  expect(await check(unknown)).toBe("UNAUTHENTICATED");
  for (const kid of ["a", "b", "../../etc/passwd", "https://evil.example/jwks", "__proto__"])
    expect(await check(await sign({}, { ...ec, kid }), 29_999)).toBe("UNAUTHENTICATED");
  expect(server.reads).toBe(1);
  expect([await check(unknown, 30_000), server.reads]).toEqual(["UNAUTHENTICATED", 2]);
  server.keys = [ec.jwk, other.jwk];
  expect([await check(unknown, 59_999), server.reads]).toEqual(["UNAUTHENTICATED", 2]);
  expect([await check(unknown, 60_000), server.reads]).toEqual(["ok", 3]);
  expect(new Set(server.paths)).toEqual(new Set(["/jwks"]));
});

test("[A4] while the issuer is down, known keys serve for a day, and others are unavailable", async () => {
  const { server, check } = await start(ec.jwk);
  const [known, unknown] = [await lasting(), await lasting(other)];
  expect(await check(known)).toBe("ok");
  server.fail();
  expect([await check(known, 10 * MINUTE_MS), server.reads]).toEqual(["ok", 2]);
  // After a failed read, nothing is read for 10 seconds.
  expect(await check(known, 10 * MINUTE_MS + 9_999)).toBe("ok");
  expect([await check(unknown, 10 * MINUTE_MS + 9_999), server.reads]).toEqual(["UNAVAILABLE", 2]);
  expect([await check(unknown, 10 * MINUTE_MS + 10_000), server.reads]).toEqual(["UNAVAILABLE", 3]);
  expect(await check(known, DAY_MS - 1)).toBe("ok");
  expect(await check(known, DAY_MS)).toBe("UNAVAILABLE");
  server.answer = undefined;
  expect(await check(known, DAY_MS + 10_000)).toBe("ok");
});

test("a failed read is logged once, however many requests wait for it or come after it", async () => {
  const { server, check, lines } = await start(ec.jwk);
  expect(await check(await lasting())).toBe("ok");
  server.fail();
  const tokens = [await lasting(other), await lasting(rsa), await lasting(other)];
  await Promise.all(tokens.map((token) => check(token, MINUTE_MS)));
  await Promise.all(tokens.map((token) => check(token, MINUTE_MS + 9_999)));
  expect([lines.length, server.reads]).toEqual([1, 2]);
  await check(await lasting(other), MINUTE_MS + 10_000);
  await check(await lasting(other), DAY_MS + MINUTE_MS);
  expect(lines).toMatchObject([
    { keys_usable_s: (DAY_MS - MINUTE_MS) / 1_000 },
    { keys_usable_s: (DAY_MS - MINUTE_MS) / 1_000 - 10 },
    { keys_usable_s: 0 },
  ]);
  expect(JSON.stringify(lines)).not.toContain(server.url);
});

test("without any key, tokens are unavailable until a read succeeds", async () => {
  const { server, check } = await start(ec.jwk);
  server.fail();
  const token = await lasting();
  expect([await check(token), await check(token, 9_999), server.reads]).toEqual([
    "UNAVAILABLE",
    "UNAVAILABLE",
    1,
  ]);
  server.answer = undefined;
  expect([await check(token, 10_000), server.reads]).toEqual(["ok", 2]);
});

test.each<[string, unknown[]]>([
  ["no key", []],
  ["no key that can be used", [{ ...ec.jwk, use: "enc" }]],
])("[A4] an issuer that publishes %s has withdrawn the former ones", async (_, keys) => {
  const { server, check, lines } = await start(ec.jwk);
  const token = await lasting();
  expect(await check(token)).toBe("ok");
  server.keys = keys;
  expect(await check(token, 10 * MINUTE_MS)).toBe("UNAVAILABLE");
  const error = "the issuer publishes no key that can be used, so its former keys no longer count";
  expect(lines).toMatchObject([{ error, keys_usable_s: 0 }]);
  server.fail();
  expect(await check(token, 11 * MINUTE_MS)).toBe("UNAVAILABLE");
});

test("entries that are no keys for signatures are ignored", async () => {
  const garbage = [
    null,
    7,
    "key",
    [],
    {},
    { kty: "oct", k: "c2VjcmV0", kid: "ec" },
    { kty: "RSA", kid: "ec" },
    { ...ec.jwk, x: 7 },
    { ...ec.jwk, crv: "secp256k1" },
    { ...ec.jwk, x: "AAAA" },
    { ...other.jwk, kid: 7 },
    { ...other.jwk, kid: "ec", use: "enc" },
    { ...other.jwk, kid: "ec", key_ops: ["sign"] },
    { ...other.jwk, kid: "ec", alg: "ES384" },
  ];
  const { check } = await start(...garbage, ec.jwk, rsa.jwk);
  expect([await check(await lasting()), await check(await lasting(rsa))]).toEqual(["ok", "ok"]);
  expect(await check(await lasting({ ...other, kid: "ec" }))).toBe("UNAUTHENTICATED");
});

test("other members of a key, such as a private part, mean nothing", async () => {
  const { check } = await start({ ...ec.jwk, d: "AAAA", x5c: ["x"], key_ops: ["verify"], ext: "no" });
  expect(await check(await lasting())).toBe("ok");
});

describe("an answer is not used", () => {
  const answers: [string, string, (server: KeyServer) => void][] = [
    ["an error", "HTTP status 500", (server) => server.fail()],
    [
      "a redirect",
      "HTTP status 302",
      (server) => {
        const { url } = server;
        server.answer = (response, request) => {
          if (request.url === "/moved") response.end(JSON.stringify({ keys: [ec.jwk] }));
          else response.writeHead(302, { location: url.replace("/jwks", "/moved") }).end();
        };
      },
    ],
    [
      "too large",
      "the answer is larger than 64 KiB",
      (server) => {
        server.answer = (response) =>
          response.end(JSON.stringify({ keys: [ec.jwk], pad: "x".repeat(65_536) }));
      },
    ],
    [
      "without an end",
      "the answer is larger than 64 KiB",
      (server) => {
        server.answer = (response) => {
          const more = (): void => {
            while (!response.destroyed && response.write("x".repeat(1_024)));
          };
          response.on("drain", more);
          more();
        };
      },
    ],
    [
      "no JSON",
      "the answer is not a JWK set",
      (server) => {
        server.answer = (response) => response.end("<html>");
      },
    ],
    [
      "no UTF-8",
      "the answer is not a JWK set",
      (server) => {
        server.answer = (response) => response.end(Buffer.from([0x7b, 0xff, 0x7d]));
      },
    ],
    [
      "no key set",
      "the answer is not a JWK set",
      (server) => {
        server.answer = (response) => response.end("null");
      },
    ],
    [
      "a key set without a list",
      "the answer is not a JWK set",
      (server) => {
        server.answer = (response) => response.end(JSON.stringify({ keys: { 0: ec.jwk } }));
      },
    ],
    [
      "cut off",
      "no complete answer: UND_ERR_SOCKET",
      (server) => {
        server.answer = (response) => {
          response.writeHead(200, { "content-length": "1000" });
          response.write("{", () => response.destroy());
        };
      },
    ],
  ];
  test.each(answers)("that is %s", async (_, error, set) => {
    const { server, check, lines } = await start(ec.jwk);
    const token = await lasting();
    expect(await check(token)).toBe("ok");
    set(server);
    // The former keys still serve.
    expect([await check(token, 10 * MINUTE_MS), server.reads]).toEqual(["ok", 2]);
    expect(await check(await lasting(other), 11 * MINUTE_MS)).toBe("UNAVAILABLE");
    const line = { event: "issuer_keys_failed", issuer: "test", error };
    expect(lines).toEqual([
      { ...line, keys_usable_s: (DAY_MS - 10 * MINUTE_MS) / 1_000 },
      { ...line, keys_usable_s: (DAY_MS - 11 * MINUTE_MS) / 1_000 },
    ]);
  });

  test.each([["before it begins"], ["in its middle"]])("that is too slow, %s", async (when) => {
    const { server, timers, check, lines } = await start(ec.jwk);
    const closed = new Promise<void>((resolve) => {
      server.answer = (response) => {
        response.on("close", resolve);
        if (when === "in its middle") response.write("{");
      };
    });
    const checking = check(await lasting());
    await expect.poll(() => server.reads).toBe(1);
    timers.ring();
    expect(await checking).toBe("UNAVAILABLE");
    await closed;
    expect(timers.size).toBe(0);
    expect(lines).toMatchObject([{ error: "no complete answer within 3 s", keys_usable_s: 0 }]);
  });

  test("from a URL that may not be read", async () => {
    const errors: string[] = [];
    const keys = new RemoteKeys("http://issuer.example/jwks?t=secret", new TestTimers(), ({ error }) => {
      errors.push(error);
    });
    expect(await keys.get(() => true, NOW_MS)).toBeUndefined();
    expect(errors).toEqual(["the URL must be an https URL; http is only allowed to a loopback address"]);
  });

  test("from a server that does not answer", async () => {
    const errors: string[] = [];
    const url = `http://127.0.0.1:${await freePort()}/jwks?t=secret`;
    const keys = new RemoteKeys(url, new TestTimers(), ({ error }) => void errors.push(error));
    expect(await keys.get(() => true, NOW_MS)).toBeUndefined();
    expect(errors).toEqual(["no complete answer: ECONNREFUSED"]);
  });
});

describe("requests that come at the same time", () => {
  test("share one read", async () => {
    const { server, timers, check } = await start(ec.jwk);
    const tokens = [await lasting(), await lasting(), await lasting(other), await lasting(rsa)];
    const outcomes = await Promise.all(tokens.map((token) => check(token)));
    expect([outcomes, server.reads]).toEqual([["ok", "ok", "UNAUTHENTICATED", "UNAUTHENTICATED"], 1]);
    expect(timers.size).toBe(0);
  });

  test("each have a timer of their own, because a cancelled request never ends its read", async () => {
    const { server, timers, check } = await start(ec.jwk);
    const fetching = vi.spyOn(globalThis, "fetch").mockReturnValueOnce(new Promise(() => {}));
    onTestFinished(() => fetching.mockRestore());
    const token = await lasting();
    let hasEnded = false;
    void check(token).finally(() => {
      hasEnded = true;
    });
    const waiter = check(token, 2_999);
    // That of the read, and that of the waiter.
    await expect.poll(() => timers.size).toBe(2);
    timers.ring();
    expect([await waiter, hasEnded]).toEqual(["UNAVAILABLE", false]);
    // A read that runs for longer than it may is replaced.
    expect([await check(token, 3_000), server.reads]).toEqual(["ok", 1]);
  });

  test("don't go back to what an older read has found", async () => {
    const { server, check } = await start();
    const releases: ((...keys: unknown[]) => void)[] = [];
    server.answer = (response) => {
      releases.push((...keys) => void response.end(JSON.stringify({ keys })));
    };
    const token = await lasting(other);
    const older = check(token);
    await expect.poll(() => releases.length).toBe(1);
    const later = check(token, 3_000);
    await expect.poll(() => releases.length).toBe(2);
    releases[1]?.(other.jwk);
    expect(await later).toBe("ok");
    releases[0]?.(ec.jwk);
    expect(await older).toBe("UNAUTHENTICATED");
    expect([await check(token, 3_001), server.reads]).toEqual(["ok", 2]);
  });
});

test("a failed read is logged for each issuer that has this URL, and for no other", async () => {
  const server = await KeyServer.start();
  server.fail();
  const lines: unknown[] = [];
  const keys = new IssuerKeys(new TestTimers(), (event, { issuer }) => void lines.push([event, issuer]));
  const at = (name: string, path = "") => issuerOf({ name, keys: null, jwksUrl: server.url + path });
  const identities = identitiesOf(at("people"), at("robots"), at("elsewhere", "/x"), issuerOf());
  await keys.get(at("robots"), identities, () => true, NOW_MS);
  expect(lines).toEqual([
    ["issuer_keys_failed", "people"],
    ["issuer_keys_failed", "robots"],
  ]);
});

test("[M6] only the URLs of the current identities are kept", async () => {
  const server = await KeyServer.start(ec.jwk);
  const keys = new IssuerKeys(new TestTimers(), () => {});
  const read = async (...paths: string[]): Promise<void> => {
    const issuers = paths.map((path) => issuerOf({ keys: null, jwksUrl: server.url + path }));
    const identities = identitiesOf(...issuers);
    for (const issuer of issuers) await keys.get(issuer, identities, () => true, NOW_MS);
  };
  await read("/a", "/b", "/c");
  await read("/b", "/d");
  // Those that stay are not read again.
  expect(server.paths).toEqual(["/jwks/a", "/jwks/b", "/jwks/c", "/jwks/d"]);
  const kept = privateField(keys, "#remote") as Map<string, unknown>;
  expect([...kept.keys()]).toEqual([`${server.url}/b`, `${server.url}/d`]);
});
