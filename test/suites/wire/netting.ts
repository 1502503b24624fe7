/** What a begin does with names that are in both of its lists (W9), through any client. */
import { Code } from "@connectrpc/connect";
import { v4 as newUuid } from "uuid";
import { expect, test } from "vitest";
import { ErrorInfoSchema, type BeginUpdateResponse } from "../../../src/coordinator/wire/protobuf.ts";
import { applied, freshName } from "../conformance/leases.ts";
import { begin, claimOf, failure, own, record } from "./messages.ts";
import { suiteOn, type Wire, type WireCoordinator } from "./suite.ts";

export function nettingSuite(title: string, start: () => Promise<WireCoordinator>): void {
  suiteOn(title, start, nettingTests);
}

/** The sources of the claims that the name has before the begin. */
const [SOURCE, OTHER_SOURCE] = [501, 502];

/** Who has the name before the begin. */
const owners = {
  "nobody has": async () => freshName(),
  "is the cell's": (wire: Wire) => ownName(wire, SOURCE),
  "is the cell's under another source": (wire: Wire) => ownName(wire, OTHER_SOURCE),
  "is another cell's": (wire: Wire) => ownName(wire, SOURCE, 2),
};

/** The create record and the destroy record of the name. */
const pairs = {
  "another spelling": (name: string) => [record(name.toUpperCase(), SOURCE), record(name, SOURCE)],
  "another subject": (name: string) => [record(name, SOURCE, 8), record(name, SOURCE)],
  "another source": (name: string) => [record(name, SOURCE), record(name, 503)],
};

async function ownName(wire: Wire, source: number, cell = 1): Promise<string> {
  const [name = ""] = await own(wire.api, wire.clientOf(`cell ${cell}`), [source], cell);
  return name;
}

async function commit(wire: Wire, { leaseUuid }: BeginUpdateResponse, name?: string): Promise<void> {
  await wire.clientOf().commitUpdate({ cellId: 1n, leaseUuid });
  if (name !== undefined) await applied(wire.api, name);
}

/** The claim of a name as its own cell sees it. Null: nobody has the name. */
async function claimedBy(wire: Wire, name: string): Promise<object | null> {
  const found = await wire
    .clientOf("operator")
    .getRecord(claimOf(name))
    .catch((error: unknown) => error);
  if (found instanceof Error) {
    expect(found).toMatchObject({ code: Code.NotFound });
    return null;
  }
  return found as object;
}

const claimed = (cellId: bigint, metadata: object): object => ({ record: { cellId, metadata } });

function nettingTests(started: () => Wire): void {
  const rows = Object.entries(pairs).flatMap(([differs, pair]) =>
    Object.entries(owners).map(([who, owner]) => ({ differs, who, pair, owner })),
  );
  test.each(rows)("[W9] a name that $who, in both lists with $differs", async ({ who, pair, owner }) => {
    const wire = started();
    const name = await owner(wire);
    const [created = {}, destroyed = {}] = pair(name);
    const before = await claimedBy(wire, name);
    const begun = wire.clientOf().beginUpdate(begin([record(freshName()), created], [destroyed]));
    if (who !== "is another cell's") {
      await commit(wire, await begun, name);
      expect(await claimedBy(wire, name)).toMatchObject(claimed(1n, created));
      return;
    }
    const error = await failure(begun);
    expect(error.code).toBe(Code.FailedPrecondition);
    expect(error.findDetails(ErrorInfoSchema)[0]?.metadata).toMatchObject({
      "create_records[1]": "not_owner",
    });
    expect(await claimedBy(wire, name)).toEqual(before);
  });

  test.each(Object.entries(owners))(
    "[W9] equal records of a name that %s change nothing",
    async (_, owner) => {
      const wire = started();
      const [name, other] = [await owner(wire), freshName()];
      const before = await claimedBy(wire, name);
      // A transaction saved a row as `name`, and then as `other`.
      const creates = [record(name, SOURCE), record(other, SOURCE)];
      for (const both of [creates, creates.toReversed()]) {
        const begun = await wire.clientOf().beginUpdate(begin(both, [record(name, SOURCE)]));
        expect(await claimedBy(wire, name)).toEqual(before);
        await wire.clientOf().rollbackUpdate({ cellId: 1n, leaseUuid: begun.leaseUuid });
        await applied(wire.api, other);
      }
      await commit(wire, await wire.clientOf().beginUpdate(begin(creates, [record(name, SOURCE)])), other);
      expect(await claimedBy(wire, name)).toEqual(before);
      expect(await claimedBy(wire, other)).toMatchObject(claimed(1n, record(other, SOURCE)));
    },
  );

  test("[W9] records cancel one for one, in any order, and what is left is netted by name", async () => {
    const wire = started();
    const [kept, gone] = await own(wire.api, wire.clientOf(), [SOURCE, OTHER_SOURCE]);
    if (kept === undefined || gone === undefined) throw new Error("two names are owned");
    const [upper, capital] = [kept.toUpperCase(), kept.replace("name", "Name")];
    // One row is respelled twice. The other is renamed, renamed back and deleted.
    const between = freshName();
    const creates = [record(upper, SOURCE), record(capital, SOURCE)];
    for (const name of [between, gone]) creates.push(record(name, OTHER_SOURCE));
    const destroys = [record(kept, SOURCE), record(upper, SOURCE)];
    for (const name of [gone, between, gone]) destroys.push(record(name, OTHER_SOURCE));
    await commit(wire, await wire.clientOf().beginUpdate(begin(creates.toReversed(), destroys)), kept);
    await applied(wire.api, gone);
    expect(await claimedBy(wire, kept)).toMatchObject(claimed(1n, record(capital, SOURCE)));
    expect(await claimedBy(wire, gone)).toBeNull();
    expect(await claimedBy(wire, between)).toBeNull();
  });

  test("[W9] [W3] a begin in which all records cancel makes a lease that holds nothing", async () => {
    const wire = started();
    const client = wire.clientOf();
    const name = await ownName(wire, SOURCE);
    const before = await claimedBy(wire, name);
    const records = [record(name, SOURCE), record(freshName(), SOURCE)];
    for (const outcome of ["commitUpdate", "rollbackUpdate"] as const) {
      const uuid = newUuid();
      const headers = { "idempotency-key": uuid };
      for (let twice = 0; twice < 2; twice += 1) {
        const begun = await client.beginUpdate(begin(records, records.toReversed()), { headers });
        expect(begun.leaseUuid?.value).toBe(uuid);
      }
      const lease = { cellId: 1n, leaseUuid: { value: uuid } };
      for (let twice = 0; twice < 2; twice += 1) expect(await client[outcome](lease)).toMatchObject({});
    }
    expect(await claimedBy(wire, name)).toEqual(before);
  });

  test("[W9] a name that is left twice in a list is refused, with the record that was sent", async () => {
    const wire = started();
    const name = freshName();
    const [one, two] = [record(name, 1), record(name, 2)];
    for (const request of [begin([one, one]), begin([one, two], [record(name, 3)]), begin([], [one, two])])
      expect((await failure(wire.clientOf().beginUpdate(request))).rawMessage).toMatch(
        /`(create|destroy)_records\[1\]\.claim` is the same name as `\1_records\[0\]\.claim`/,
      );
  });

  test("[W9] a destroy record without facts is refused if a create record has its spelling", async () => {
    const client = started().clientOf();
    const [a, b] = [freshName(), freshName()];
    const { subject, source, claim } = record(a);
    for (const [given, missing] of [
      [{ claim }, "subject"],
      [{ claim, source }, "subject"],
      [{ claim, subject }, "source"],
    ] as const) {
      const error = await failure(client.beginUpdate(begin([record(a), record(b)], [given])));
      expect([error.code, error.rawMessage]).toEqual([
        Code.InvalidArgument,
        expect.stringContaining(`destroy_records[0].${missing}`),
      ]);
    }
    const { leaseUuid } = await client.beginUpdate(begin([record(b)], [claimOf(a)]));
    await client.rollbackUpdate({ cellId: 1n, leaseUuid });
  });

  test("[W5] [W9] a name in both lists that another begin creates is ALREADY_EXISTS", async () => {
    const wire = started();
    const name = freshName();
    await wire.clientOf("cell 2").beginUpdate(begin([record(name)], [], 2n));
    const respelled = begin([record(name.toUpperCase())], [record(name)]);
    const error = await failure(wire.clientOf().beginUpdate(respelled));
    expect(error.code).toBe(Code.AlreadyExists);
    expect(error.findDetails(ErrorInfoSchema)[0]?.metadata).toMatchObject({ "create_records[0]": "leased" });
  });
}
