import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { freshName } from "./browser-session.ts";
import type { ExampleProcess } from "./example-process.ts";

/** Sends a request with a Host header, which `fetch` cannot set. */
async function statusFor(url: string, host: string): Promise<number | undefined> {
  const [answer] = (await once(request(url, { headers: { host } }).end(), "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

/** Requests that a browser would not send, to an example that is running. */
export function requestTests(running: () => ExampleProcess): void {
  test("a form from another site is refused", async () => {
    const example = running();
    const body = (): URLSearchParams =>
      new URLSearchParams({ handle: freshName("csrf"), email: `${freshName("csrf")}@example.com` });
    for (const origin of ["https://example.com", "http://127.0.0.1:1", "null", undefined]) {
      for (const url of [example.url, example.cellUrl("1")]) {
        const headers = origin === undefined ? {} : { origin };
        const answer = await fetch(`${url}/-/cells/1/sign-up`, {
          method: "POST",
          body: body(),
          headers,
          redirect: "manual",
        });
        expect(answer.status, `${origin} at ${url}`).toBe(403);
      }
    }
    const fine = await fetch(`${example.url}/-/cells/1/sign-up`, {
      method: "POST",
      body: body(),
      headers: { origin: example.url },
      redirect: "manual",
    });
    expect(fine.status).toBe(303);
  });

  test("every printed address opens a page, and each page marks one part in its navigation", async () => {
    const example = running();
    const [url, cell] = [example.url, example.cellUrl("1")];
    const printed = example.output.match(/(?<=^ {2}(router|cell \d) +)http\S+/gm) ?? [];
    expect(printed).toHaveLength(3);
    for (const address of [...printed, cell, `${cell}/-/cells/2`, `${url}/-/cells/1`]) {
      const answer = await fetch(address);
      expect(answer.status, address).toBe(200);
      const [navigation] = /<nav aria-label="Router and cells">[^]*?<\/nav>/.exec(await answer.text()) ?? [];
      expect(navigation?.match(/aria-current/g), address).toHaveLength(1);
    }
    for (const base of [url, cell]) expect((await fetch(`${base}/-/cells/1/nothing`)).status).toBe(404);
  });

  test("a request with another host name is refused", async () => {
    const example = running();
    for (const url of [example.url, example.cellUrl("2")]) {
      expect(await statusFor(url, "evil.example.com")).toBe(421);
      expect(await statusFor(`${url}/-/cells/2`, new URL(url).host.replace("127.0.0.1", "localhost"))).toBe(
        200,
      );
    }
  });

  test("input is shown as text, and input that is too long is refused", async () => {
    const example = running();
    const post = (fields: Record<string, string>): Promise<Response> =>
      fetch(`${example.url}/-/cells/1/sign-up`, {
        method: "POST",
        body: new URLSearchParams(fields),
        headers: { origin: example.url },
      });
    const evil = `"><script>alert(1)</script>`;
    const answer = await post({ handle: evil, email: evil, crash: evil });
    expect(answer.status).toBe(422);
    expect(await answer.text()).not.toContain("<script>alert");
    const found = await fetch(`${example.url}/${encodeURIComponent(evil)}`);
    expect(await found.text()).not.toContain("<script>alert");
    expect((await post({ handle: "a".repeat(5_000), email: "a@example.com" })).status).toBe(422);
    expect((await post({ handle: freshName("nul"), email: "a\0@example.com" })).status).toBe(422);
    for (const url of [example.url, example.cellUrl("1")])
      expect((await fetch(`${url}/%00`)).status).toBe(404);
    expect((await post({ handle: "a".repeat(50_000), email: "a@example.com" })).status).toBe(413);
  });
}
