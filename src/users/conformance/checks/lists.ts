/** Lists of leases and records, exports and digests. */
import type { Check, CheckContext, Lease, SeenRecord } from "../check-context.ts";
import { describe, expectEqual, expectFields, expectStatus, expectThat } from "../nonconformity.ts";

/** A list that never ends is one that is wrong. */
const MAX_PAGES = 2_000;

interface ListedLease {
  uuid: string;
  cell_id: string;
  state: string;
}

async function pagesOf<Page extends { next_page_token: string }>(
  context: CheckContext,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<Page[]> {
  const pages: Page[] = [];
  let token = "";
  do {
    expectThat(pages.length < MAX_PAGES, `${path} has more than ${MAX_PAGES} pages`);
    const parameters = new URLSearchParams({ ...query, ...(token === "" ? {} : { page_token: token }) });
    const received = await context.send("GET", `${path}?${parameters.toString()}`);
    expectStatus(received, 200);
    expectFields(received, { next_page_token: (received.json as Page).next_page_token ?? "" });
    pages.push(received.json as Page);
    token = (received.json as Page).next_page_token;
  } while (token !== "");
  return pages;
}

async function listedLeases(
  context: CheckContext,
  since: Lease,
  pageSize: number,
): Promise<{ pages: ListedLease[][]; all: ListedLease[] }> {
  const { lease } = since.received.json as { lease: { created_at: string } };
  const read = await pagesOf<{ leases: ListedLease[]; next_page_token: string }>(
    context,
    `/v1/cells/${context.cellId()}/leases`,
    { created_after: lease.created_at, page_size: String(pageSize) },
  );
  const pages = read.map(({ leases }) => leases);
  return { pages, all: pages.flat() };
}

const ranged = (context: CheckContext): Record<string, string> => ({
  source_type: context.deployment.types.source,
  // The prefix without its last character comes before all source ids of the check.
  source_id_gt: context.prefix.slice(0, -1),
  source_id_lte: `${context.prefix}\uffff`,
});

const recordsPath = (context: CheckContext): string => `/v1/cells/${context.cellId()}/records`;

async function recordPages(context: CheckContext, pageSize: number): Promise<SeenRecord[][]> {
  const query = { ...ranged(context), page_size: String(pageSize) };
  const pages = await pagesOf<{ records: SeenRecord[]; next_page_token: string }>(
    context,
    recordsPath(context),
    query,
  );
  return pages.map(({ records }) => records);
}

/** Owns names whose source ids are out of order, with several names of one source. */
async function ownMixed(context: CheckContext): Promise<string[]> {
  const ids = ["b", "a1", "A", "a", "z", "a0", "é"].map((end) => `${context.prefix}${end}`);
  const sources = [...ids, ...Array.from({ length: 4 }, () => `${context.prefix}a`)];
  const lease = await context.granted({
    creates: sources.map((source) => context.op(context.name(), { source })),
  });
  await context.commit(lease);
  return sources;
}

/** Bytes of UTF-8 as hexadecimal digits, which sort like the bytes. */
const hexOf = (text: string): string =>
  [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

const inOrder = (ids: readonly string[]): string[] =>
  ids
    .map((id) => ({ id, hex: hexOf(id) }))
    .toSorted((a, b) => (a.hex < b.hex ? -1 : Number(a.hex > b.hex)))
    .map(({ id }) => id);

interface Digest {
  count: number;
  hash: string;
  held: boolean;
}

async function digestsOf(context: CheckContext, ranges: readonly object[]): Promise<Digest[]> {
  const received = await context.send("POST", `${recordsPath(context)}/digests`, {
    body: { source_type: context.deployment.types.source, ranges },
  });
  expectStatus(received, 200);
  expectFields(received, { digests: ranges.map(() => ({})) });
  return (received.json as { digests: Digest[] }).digests;
}

/**
 * Returns the digests of ranges that no open lease touches. They are not held, because a shard asks about its
 * holds first (R4). If it could not ask, it is called again.
 */
async function settledDigests(context: CheckContext, ranges: readonly object[]): Promise<Digest[]> {
  for (let attempt = 1; ; attempt += 1) {
    const digests = await digestsOf(context, ranges);
    const held = digests.filter((digest) => digest.held);
    if (held.length === 0) return digests;
    expectThat(attempt < HELD_ATTEMPTS, "a digest is `held`, although no open lease touches its range");
  }
}

const HELD_ATTEMPTS = 3;

const wordsOf = (hash: string): number[] =>
  (hash.match(/[\da-f]{8}/g) ?? []).map((word) => Number.parseInt(word, 16));

export const listChecks: readonly Check[] = [
  {
    id: "leases/complete",
    rules: ["R1"],
    title: "The list of leases has every open lease once, in the order of the grants, in pages of any size.",
    run: async (context) => {
      const leases: Lease[] = [];
      for (const name of context.names(7))
        leases.push(await context.granted({ creates: [context.op(name)] }));
      const [first, ...others] = leases;
      if (first === undefined) return;
      for (const size of [1, 2, 3, 100]) {
        const { pages, all } = await listedLeases(context, first, size);
        for (const { length } of pages)
          expectThat(length <= size, `a page of at most ${size} leases has ${length}`);
        const listed = all.map(({ uuid }) => uuid);
        expectThat(new Set(listed).size === listed.length, `the list in pages of ${size} has a lease twice`);
        const expected = leases.map(({ uuid }) => uuid);
        const shown = listed.filter((uuid) => expected.includes(uuid));
        expectEqual(shown, expected, `the open leases of the check in the list in pages of ${size}`);
        for (const { cell_id: cell, state } of all)
          expectEqual({ cell, state }, { cell: context.cellId(), state: "GRANTED" }, "a listed lease");
      }
      for (const lease of others) await context.rollBack(lease);
      const { all } = await listedLeases(context, first, 100);
      const left = new Set(all.map(({ uuid }) => uuid));
      expectThat(left.has(first.uuid), `the list lacks the open lease ${first.uuid}`);
      for (const { uuid } of others)
        expectThat(!left.has(uuid), `the list has ${uuid}, which was rolled back`);
      await context.rollBack(first);
    },
  },
  {
    id: "leases/only-own",
    rules: ["R1"],
    title: "A list of leases has only leases of its cell.",
    needs: ["other"],
    run: async (context) => {
      const mine = await context.granted({ creates: [context.op(context.name())] });
      const theirs = await context.granted({ creates: [context.op(context.name())] }, "other");
      const { all } = await listedLeases(context, mine, 100);
      expectThat(!all.some(({ uuid }) => uuid === theirs.uuid), `the list has a lease of another cell`);
      const foreign = await context.send("GET", `/v1/cells/${context.cellId()}/leases`, { who: "other" });
      expectStatus(foreign, 403);
      await context.rollBack(mine);
      await context.rollBack(theirs);
    },
  },
  {
    id: "records/order",
    rules: ["R3"],
    title: "Records are listed once, in the order of their source ids, and a page has all of a source id.",
    run: async (context) => {
      const expected = inOrder(await ownMixed(context));
      for (const size of [1, 3, 100]) {
        const pages = await recordPages(context, size);
        const ids = pages.flat().map(({ source }) => source?.id ?? "");
        expectEqual(ids, expected, `the source ids in pages of ${size}`);
        const buckets = pages.flat().map(({ bucket }) => bucket.value);
        expectThat(new Set(buckets).size === buckets.length, `pages of ${size} have a record twice`);
        for (const [index, page] of pages.entries()) {
          const next = new Set(pages[index + 1]?.map(({ source }) => source?.id));
          for (const { source } of page)
            expectThat(!next.has(source?.id), `the records of ${source?.id} are on two pages of ${size}`);
        }
      }
    },
  },
  {
    id: "records/holds",
    rules: ["R2", "R3"],
    title: "Lists of records show holds as lookups do.",
    run: async (context) => {
      const [kept = "", made = ""] = context.names(2);
      await context.own([kept]);
      const destroying = await context.granted({ destroys: [{ bucket: context.bucket(kept) }] });
      const creating = await context.granted({ creates: [context.op(made)] });
      const shown = (await recordPages(context, 100)).flat();
      expectEqual(
        shown.map(({ bucket, status, lease_uuid: lease }) => [bucket.value, status, lease]),
        [
          [kept, "LEASE_DESTROYING", destroying.uuid],
          [made, "LEASE_CREATING", creating.uuid],
        ],
        "the records",
      );
      await context.rollBack(creating);
      await context.commit(destroying);
      expectEqual((await recordPages(context, 100)).flat(), [], "the records after the decisions");
    },
  },
  {
    id: "records/export",
    rules: ["R3"],
    title: "An export has the records of the list in the same order, and says that it is complete.",
    run: async (context) => {
      await ownMixed(context);
      const listed = (await recordPages(context, 100)).flat();
      const query = new URLSearchParams(ranged(context));
      const received = await context.send("GET", `${recordsPath(context)}/export?${query.toString()}`);
      expectStatus(received, 200);
      expectThat(received.text.endsWith("\n"), `the last line of an export has no line feed`);
      const lines = received.text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { record?: SeenRecord; end?: string });
      const records = lines.flatMap(({ record }) => record ?? []);
      expectEqual(records, listed, "the records of the export");
      expectEqual(lines.at(-1), { end: "complete" }, "the last line of the export");
    },
  },
  {
    id: "records/only-own",
    rules: ["R3"],
    title: "A list of records has only records of its cell.",
    needs: ["other"],
    run: async (context) => {
      const [mine = "", theirs = ""] = context.names(2);
      await context.own([mine]);
      await context.own([theirs], "other");
      const listed = (await recordPages(context, 100)).flat().map(({ bucket }) => bucket.value);
      expectEqual(listed, [mine], "the listed names");
      const foreign = await context.send(
        "GET",
        `${recordsPath(context)}?${new URLSearchParams(ranged(context)).toString()}`,
        {
          who: "other",
        },
      );
      expectThat(foreign.status === 403, `another cell's list: ${describe(foreign)}`);
    },
  },
  {
    id: "digests/sums",
    rules: ["R4"],
    title: "A digest counts the claims of its range, and those of two halves add up to that of the whole.",
    run: async (context) => {
      const sources = await ownMixed(context);
      const { source_id_gt: gt, source_id_lte: lte } = ranged(context);
      const middle = `${context.prefix}a`;
      const [whole] = await settledDigests(context, [{ source_id_gt: gt, source_id_lte: lte }]);
      const halves = await settledDigests(context, [
        { source_id_gt: gt, source_id_lte: middle },
        { source_id_gt: middle, source_id_lte: lte },
      ]);
      if (whole === undefined) return;
      expectEqual(whole.count, sources.length, "the count of the digest");
      expectEqual(
        halves.reduce((sum, { count }) => sum + count, 0),
        whole.count,
        "the sum of the counts",
      );
      const sums = wordsOf(whole.hash).map((_, index) =>
        halves.reduce((sum, { hash }) => (sum + (wordsOf(hash)[index] ?? 0)) % 2 ** 32, 0),
      );
      expectEqual(sums, wordsOf(whole.hash), "the sum of the hashes");
    },
  },
  {
    id: "digests/held",
    rules: ["R4"],
    title: "A digest is held while a lease touches its range, and the same as before once it is rolled back.",
    run: async (context) => {
      const [kept = "", made = ""] = context.names(2);
      await context.own([kept]);
      const { source_id_gt: gt, source_id_lte: lte } = ranged(context);
      const ranges = [{ source_id_gt: gt, source_id_lte: lte }];
      const [before] = await settledDigests(context, ranges);
      for (const batch of [
        { creates: [context.op(made)] },
        { destroys: [{ bucket: context.bucket(kept) }] },
        { replaces: [context.op(kept, { subject: "8" })] },
      ]) {
        const lease = await context.granted(batch);
        const [during] = await digestsOf(context, ranges);
        expectEqual(during?.held, true, "`held` while a lease touches the range");
        await context.rollBack(lease);
      }
      const [after] = await settledDigests(context, ranges);
      expectEqual(after, before, "the digest");
      await context.commit(await context.granted({ replaces: [context.op(kept, { subject: "8" })] }));
      const [changed] = await settledDigests(context, ranges);
      expectThat(changed?.hash !== before?.hash, "the digest is the same after a replace changed a claim");
    },
  },
];
