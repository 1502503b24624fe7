/** `login`, contexts, and where a command finds its URL and its key. */
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startCommandLine, type CommandLine } from "./command-line.ts";

const fileOf = ({ home }: CommandLine): string => join(home, "leasehold/config.json");
const alone = { LEASEHOLD_KEY: undefined, LEASEHOLD_URL: undefined };

describe("login", () => {
  test("saves a piped key in a file that only its owner can read", async () => {
    const line = await startCommandLine();
    const { url, keys } = line.coordinator;
    const login = ["login", "--url", url, "--name", "test"];
    const { code, out, err } = await line.run(login, { env: alone, input: `${keys.operator}\n` });
    expect(code).toBe(0);
    expect(out).toContain(`Saved the context test: ${url} with a key of the role operator`);
    expect(out + err).not.toContain(keys.operator);
    expect(statSync(fileOf(line)).mode & 0o777).toBe(0o600);
    expect(statSync(join(line.home, "leasehold")).mode & 0o777).toBe(0o700);
    expect((await line.run(["api", "GET", "/v1/admin/cells"], { env: alone })).code).toBe(0);
  });

  test("asks at a terminal, and saves nothing if the deployment refuses the key", async () => {
    const line = await startCommandLine();
    const { url, keys } = line.coordinator;
    const wrong = await line.run(["login", "--url", url], {
      env: alone,
      answers: [`${keys.operator.slice(0, -4)}AAAA`],
    });
    expect(wrong).toMatchObject({ code: 5, out: "", asked: [`Key for ${url}: `] });
    expect(wrong.err).toContain("does not accept this key");
    const other = await line.run(["login", "--url", url], { env: alone, answers: ["hunter2"] });
    expect(other).toMatchObject({ code: 2, out: "" });
    expect(other.err).not.toContain("hunter2");
    expect(existsSync(fileOf(line))).toBe(false);
  });
});

describe("contexts", () => {
  async function twoContexts(): Promise<CommandLine> {
    const line = await startCommandLine();
    const { url, keys } = line.coordinator;
    const { url: urlOf } = { url };
    await line.run(["login", "--url", urlOf, "--name", "one"], { env: alone, input: keys.operator });
    await line.run(["login", "--url", urlOf, "--name", "two"], { env: alone, input: keys.router });
    return line;
  }

  test("ls, use and rm", async () => {
    const line = await twoContexts();
    const { contexts } = await line.json(["context", "ls"], { env: alone });
    expect(contexts).toMatchObject([
      { name: "one", role: "operator", current: false },
      { name: "two", role: "router", current: true },
    ]);
    expect(JSON.stringify(contexts)).not.toContain("lhk_");
    expect((await line.run(["api", "GET", "/v1/admin/cells"], { env: alone })).code).toBe(5);
    expect((await line.run(["api", "GET", "/v1/admin/cells", "--context", "one"], { env: alone })).code).toBe(
      0,
    );
    expect(await line.run(["context", "use", "one"], { env: alone })).toMatchObject({ code: 0 });
    expect((await line.run(["api", "GET", "/v1/admin/cells"], { env: alone })).code).toBe(0);
    expect(await line.run(["context", "use", "three"], { env: alone })).toMatchObject({ code: 4 });
    expect(await line.run(["context", "rm", "one"], { env: alone })).toMatchObject({ code: 2 });
    expect(await line.run(["context", "rm", "one"], { env: alone, answers: ["two"] })).toMatchObject({
      code: 2,
    });
    expect(await line.run(["context", "rm", "one"], { env: alone, answers: ["one"] })).toMatchObject({
      code: 0,
    });
    expect(JSON.parse(readFileSync(fileOf(line), "utf8"))).toMatchObject({
      current: null,
      contexts: { two: {} },
    });
  });

  test("the key of a context is only sent to the URL of the context", async () => {
    const line = await twoContexts();
    line.sent.length = 0;
    const other = await line.run(["api", "GET", "/v1/limits", "--url", "https://other.example"], {
      env: alone,
    });
    expect(other).toMatchObject({ code: 2 });
    expect(other.err).toContain("there is no key for https://other.example");
    expect(line.sent).toEqual([]);
    const same = ["api", "GET", "/v1/limits", "--url", line.coordinator.url];
    expect((await line.run(same, { env: alone })).code).toBe(0);
  });

  test("LEASEHOLD_KEY comes before the key of a context, but not before --context", async () => {
    const line = await twoContexts();
    line.sent.length = 0;
    const { keys } = line.coordinator;
    const env = { ...alone, LEASEHOLD_KEY: keys.cell("1") };
    await line.run(["api", "GET", "/v1/limits"], { env });
    await line.run(["api", "GET", "/v1/limits", "--context", "two"], { env });
    expect(line.sent.map(({ authorization }) => authorization)).toEqual([
      `Bearer ${keys.cell("1")}`,
      `Bearer ${keys.router}`,
    ]);
  });

  test("a file that others can read is refused, with the command that mends it", async () => {
    const line = await twoContexts();
    chmodSync(fileOf(line), 0o640);
    line.sent.length = 0;
    const { code, err } = await line.run(["api", "GET", "/v1/limits"], { env: alone });
    expect(code).toBe(2);
    expect(err).toContain(`chmod 600 ${fileOf(line)}`);
    expect(line.sent).toEqual([]);
  });

  test.each([
    ["scraper", "a key of the role scraper can only read /metrics"],
    ["bridge", "a key of the role bridge is only for `leasehold grpc`"],
  ])("login refuses a key of the role %s, and says so", async (role, sentence) => {
    const line = await startCommandLine();
    const { out: input } = await line.run(["keys", "mint", "--role", role]);
    line.sent.length = 0;
    const { code, err } = await line.run(["login", "--url", line.coordinator.url], { env: alone, input });
    expect(code).toBe(2);
    expect(err).toContain(sentence);
    expect(line.sent).toEqual([]);
  });

  test("a damaged key or URL of a context is not sent, and the key is not shown", async () => {
    const line = await startCommandLine();
    mkdirSync(join(line.home, "leasehold"));
    for (const [saved, sentence] of [
      [{ url: "https://a.example", key: "lhk_secret\nsecond" }, "the key must be one line"],
      [{ url: "https://a.example/path", key: "lhk_secret" }, "without a path"],
    ] as const) {
      writeFileSync(fileOf(line), JSON.stringify({ current: "a", contexts: { a: saved } }), { mode: 0o600 });
      for (const flags of [[], ["--context", "a"]]) {
        const { code, err } = await line.run(["api", "GET", "/v1/limits", ...flags], { env: alone });
        expect(code).toBe(2);
        expect(err).toContain(sentence);
        expect(err).not.toContain("lhk_secret");
      }
    }
    expect(line.sent).toEqual([]);
  });

  test("a damaged file is refused by its name", async () => {
    const line = await startCommandLine();
    mkdirSync(join(line.home, "leasehold"));
    for (const [text, sentence] of [
      ["{", "is not a file of contexts"],
      ['{"contexts":{"a":{"url":"https://a.example"}}}', "`contexts.a.key` must be a key"],
      ['{"current":7}', "`current` must be a name or null"],
    ] as const) {
      writeFileSync(fileOf(line), text, { mode: 0o600 });
      const { code, err } = await line.run(["context", "ls"], { env: alone });
      expect(code).toBe(2);
      expect(err).toContain(sentence);
    }
  });
});
