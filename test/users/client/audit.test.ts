import { expect, it } from "vitest";
import { fakeClient, TIME, UUID } from "./fake.ts";

const entry = {
  id: UUID,
  at: TIME,
  key_id: "k1",
  key_note: null,
  action: "add_cell",
  cell_id: "7",
  target: "7",
  part: "directory",
  reason: null,
  request_id: UUID,
  before: null,
  after: { name: "seven" },
};

it("lists what operators changed, with all filters on every page, and says how complete it is", async () => {
  const page = (token: string, through: string | null) => ({
    status: 200,
    json: { entries: [entry], complete_through: through, next_page_token: token },
  });
  const { client, sent } = fakeClient([page("next", TIME), page("", null)]);
  const filters = { keyId: "k1", action: "add_cell", cell: "7", target: "7" } as const;
  const pages = await Array.fromAsync(
    client.audit.list({ ...filters, after: TIME, before: TIME, pageSize: 1 }).pages(),
  );
  expect(pages).toEqual([
    { items: [entry], nextPageToken: "next", completeThrough: TIME },
    { items: [entry], nextPageToken: "", completeThrough: null },
  ]);
  const query = {
    key_id: "k1",
    action: "add_cell",
    cell: "7",
    target: "7",
    after: TIME,
    before: TIME,
    page_size: "1",
  };
  expect(sent.map(({ url }) => Object.fromEntries(new URL(url).searchParams))).toEqual([
    query,
    { ...query, page_token: "next" },
  ]);
});
