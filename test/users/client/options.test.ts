import { expect, it } from "vitest";
import { createClient, InvalidArgumentError, type ClientOptions } from "../../../src/users/client/index.ts";
import { fakeFetch, granted, UUID } from "./fake.ts";

const good = { url: "https://leasehold.test", key: "k" };

it.each<{ field: string; options: Record<string, unknown> }>([
  ...[
    undefined,
    "",
    "leasehold.test",
    "ftp://leasehold.test",
    "https://",
    "https://leasehold.test/v1",
    "https://leasehold.test?a",
    "https://user:secret@leasehold.test",
    7,
  ].map((url) => ({
    field: "url",
    options: { url },
  })),
  ...[undefined, "", 7, null].map((key) => ({ field: "key", options: { key } })),
  ...[0, -1, Number.NaN].flatMap((value) =>
    ["deadlineMs", "attemptMs", "backoffMs"]
      .map((field): { field: string; options: Record<string, unknown> } => ({
        field,
        options: { [field]: value },
      }))
      .concat(
        { field: "begins.max", options: { begins: { max: value } } },
        { field: "breaker.failures", options: { breaker: { failures: value } } },
        { field: "breaker.openMs", options: { breaker: { openMs: value } } },
      ),
  ),
  ...[-1, Number.NaN].map((retries) => ({ field: "retries", options: { retries } })),
])("names the option that cannot be: $field of $options", ({ field, options }) => {
  const given = { ...good, ...options } as ClientOptions;
  expect(() => createClient(given)).toThrow(InvalidArgumentError);
  expect(() => createClient(given)).toThrow(
    expect.objectContaining({ code: "INVALID_ARGUMENT", field, message: expect.stringContaining(field) }),
  );
  expect(() => createClient(given)).not.toThrow("secret");
});

it.each<Partial<ClientOptions>>([
  {},
  { url: "http://127.0.0.1:8787/" },
  { url: "HTTPS://[::1]:1//" },
  { key: async () => "k" },
  { retries: 0 },
  { retries: Number.POSITIVE_INFINITY, deadlineMs: Number.POSITIVE_INFINITY, attemptMs: 0.5 },
  { breaker: false, begins: {} },
  { breaker: {}, begins: { max: 1, onFull: "warn" } },
])("takes %o", (options) => {
  expect(() => createClient({ ...good, ...options })).not.toThrow();
});

it("ignores slashes at the end of the URL", async () => {
  const { fetch, sent } = fakeFetch(granted);
  await createClient({ ...good, url: "https://leasehold.test//", cell: "1", fetch }).leases.get(UUID);
  expect(sent[0]?.url).toBe(`https://leasehold.test/v1/cells/1/leases/${UUID}`);
});
