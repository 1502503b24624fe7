/** The protobuf wire: the same calls over each protocol, and what lies between a message and a route. */
import type {
  DescEnum,
  DescMessage,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { CellName, Who } from "../api.ts";
import {
  Bucket_TypeSchema,
  ClaimSchema,
  ClaimService,
  Record_Status,
  Source_TypeSchema,
  Subject_TypeSchema,
  type Claim,
  type ListLeasesResponse,
} from "../../../coordinator/wire/protobuf.ts";
import { SkipError, type Check, type CheckContext } from "../check-context.ts";
import { describe, expectEqual, expectFields, expectThat } from "../nonconformity.ts";
import { callWire, sendWire, wireProtocols, type WireAnswer, type WireProtocol } from "../wire-client.ts";

type Input<Method> = Method extends DescMethodUnary<infer Message> ? MessageInitShape<Message> : never;
type Begin = Input<typeof ClaimService.method.beginUpdate>;
type Metadata = Exclude<NonNullable<(Begin & object)["createRecords"]>[number], undefined>;

/** Calls of one check over one protocol. */
class Wire {
  readonly context: CheckContext;
  readonly protocol: WireProtocol;

  constructor(context: CheckContext, protocol: WireProtocol) {
    this.context = context;
    this.protocol = protocol;
  }

  cell(by: CellName = "cell"): bigint {
    return BigInt(this.context.cellId(by));
  }

  /** Calls a method, whatever the answer is. */
  call<In extends DescMessage, Out extends DescMessage>(
    method: DescMethodUnary<In, Out>,
    input: MessageInitShape<In>,
    who: Who = "cell",
    headers: Readonly<Record<string, string>> = {},
  ): Promise<WireAnswer<MessageShape<Out>>> {
    return callWire(this.context.api, this.protocol, method, input, { who, headers });
  }

  /** Calls a method that must succeed. */
  async ask<In extends DescMessage, Out extends DescMessage>(
    method: DescMethodUnary<In, Out>,
    input: MessageInitShape<In>,
    who?: Who,
    headers?: Readonly<Record<string, string>>,
  ): Promise<MessageShape<Out>> {
    const { message, code, received } = await this.call(method, input, who, headers);
    expectThat(message !== undefined, `${this.protocol}: ${describe(received)}; ${code}, expected a success`);
    return message;
  }

  /** Calls a method that must fail with this code. */
  async fail<In extends DescMessage>(
    expected: string,
    method: DescMethodUnary<In>,
    input: MessageInitShape<In>,
    who?: Who,
    headers?: Readonly<Record<string, string>>,
  ): Promise<void> {
    const { code, received } = await this.call(method, input, who, headers);
    expectThat(
      code === expected,
      `${this.protocol}: ${describe(received)}; the code is ${code ?? "OK"}, expected ${expected}`,
    );
  }

  bucket(value: string): { type: number; value: string } {
    return { type: numberOf(Bucket_TypeSchema, this.context.deployment.types.bucket), value };
  }

  /** A record of a batch. Its source id is the name. */
  record(value: string): Metadata {
    const { types } = this.context.deployment;
    return {
      bucket: this.bucket(value),
      subject: { type: numberOf(Subject_TypeSchema, types.subject), id: 7n },
      source: {
        type: numberOf(Source_TypeSchema, types.source),
        railsPrimaryKeyId: new TextEncoder().encode(value),
      },
    };
  }

  /** Begins a lease that must be granted. Its UUID is known before, so that it can be given up. */
  async granted(
    batch: Begin & object,
    by: CellName = "cell",
    uuid = this.context.newUuid(),
  ): Promise<string> {
    this.context.leases.add(uuid, by);
    const input = { ...batch, cellId: this.cell(by) };
    const answer = await this.ask(beginUpdate, input, by, { "idempotency-key": uuid });
    expectEqual(answer.leaseUuid?.value, uuid, "the UUID of the lease");
    return uuid;
  }

  async commit(uuid: string, by: CellName = "cell"): Promise<void> {
    await this.ask(commitUpdate, { cellId: this.cell(by), leaseUuid: { value: uuid } }, by);
    this.context.leases.decided(uuid, by);
  }

  async rollBack(uuid: string, by: CellName = "cell"): Promise<void> {
    await this.ask(rollbackUpdate, { cellId: this.cell(by), leaseUuid: { value: uuid } }, by);
    this.context.leases.decided(uuid, by);
  }
}

const { beginUpdate, commitUpdate, rollbackUpdate, getRecord, listLeases, listRecords } = ClaimService.method;

function numberOf({ values }: DescEnum, name: string): number {
  const value = values.find((each) => each.name === name);
  if (value === undefined) throw new SkipError(`proto/ has no number for the type ${name}`);
  return value.number;
}

interface WireCheck extends Omit<Check, "run"> {
  run: (wire: Wire) => Promise<void>;
}

const overEachProtocol: readonly WireCheck[] = [
  {
    id: "life-of-a-name",
    rules: ["W5"],
    title: "A name is leased, listed, committed, found and given up.",
    run: async (wire) => {
      const { context } = wire;
      const name = context.name();
      const uuid = await wire.granted({ createRecords: [wire.record(name)] });
      expectFields(await context.send("GET", context.leasePath(uuid)), { lease: { state: "GRANTED" } });
      const leased = await wire.ask(getRecord, { bucket: wire.bucket(name) });
      expectEqual(
        [leased.record?.status, leased.record?.leaseUuid?.value],
        [Record_Status.LEASE_CREATING, uuid],
        "the record of a granted lease",
      );
      await wire.commit(uuid);
      await wire.commit(uuid);
      const found = await wire.ask(getRecord, { bucket: wire.bucket(name) });
      expectEqual(
        [found.record?.status, found.record?.cellId === wire.cell(), found.record?.leaseUuid],
        [Record_Status.ACTIVE, true, undefined],
        "the record of a claim",
      );
      const id = new TextEncoder().encode(name);
      const range = { sourceIdGt: id.subarray(0, -1), sourceIdLte: id };
      const source = numberOf(Source_TypeSchema, context.deployment.types.source);
      const { records } = await wire.ask(listRecords, { cellId: wire.cell(), sourceType: source, ...range });
      const listed = records.map(({ metadata }) =>
        new TextDecoder().decode(metadata?.source?.railsPrimaryKeyId),
      );
      expectEqual(listed, [name], "the listed source ids");
      await wire.commit(await wire.granted({ destroyRecords: [wire.record(name)] }));
      await wire.fail("NOT_FOUND", getRecord, { bucket: wire.bucket(name) });
    },
  },
  {
    id: "codes",
    rules: ["W5"],
    title: "Refusals have the code of the API, but a name that is leased is ALREADY_EXISTS.",
    run: async (wire) => {
      const { context } = wire;
      const [owned = "", held = ""] = context.names(2);
      await context.own([owned]);
      const cellId = wire.cell();
      const holding = await wire.granted({ createRecords: [wire.record(held)] });
      const begin = (batch: Begin & object) => ({ ...batch, cellId });
      await wire.fail("ALREADY_EXISTS", beginUpdate, begin({ createRecords: [wire.record(owned)] }));
      await wire.fail("ALREADY_EXISTS", beginUpdate, begin({ createRecords: [wire.record(held)] }));
      await wire.fail("FAILED_PRECONDITION", beginUpdate, begin({ destroyRecords: [wire.record(held)] }));
      await wire.fail("INVALID_ARGUMENT", beginUpdate, begin({}));
      await wire.fail("INVALID_ARGUMENT", beginUpdate, begin({ createRecords: [wire.record("")] }));
      await wire.rollBack(holding);
      const leaseUuid = { value: holding };
      await wire.fail("FAILED_PRECONDITION", commitUpdate, { cellId, leaseUuid });
      await wire.fail("NOT_FOUND", commitUpdate, { cellId, leaseUuid: { value: context.newUuid() } });
      await wire.fail("NOT_FOUND", getRecord, { bucket: wire.bucket(held) });
    },
  },
  {
    id: "idempotency-key",
    rules: ["W3", "B2"],
    title: "A begin with the same idempotency-key is the same lease, and another batch is refused.",
    run: async (wire) => {
      const batch = { createRecords: [wire.record(wire.context.name())] };
      const uuid = await wire.granted(batch);
      await wire.granted(batch, "cell", uuid);
      const other = { createRecords: [wire.record(wire.context.name())], cellId: wire.cell() };
      await wire.fail("FAILED_PRECONDITION", beginUpdate, other, "cell", { "idempotency-key": uuid });
      await wire.fail("INVALID_ARGUMENT", beginUpdate, other, "cell", { "idempotency-key": "x" });
      await wire.rollBack(uuid);
      const again = { ...batch, cellId: wire.cell() };
      await wire.fail("FAILED_PRECONDITION", beginUpdate, again, "cell", { "idempotency-key": uuid });
    },
  },
  {
    id: "callers",
    rules: ["W1"],
    title: "A caller without a key, or with that of another cell, is refused.",
    needs: ["other"],
    run: async (wire) => {
      const batch = { createRecords: [wire.record(wire.context.name())], cellId: wire.cell() };
      const headers = { authorization: "Bearer lhk_x.y" };
      await wire.fail("UNAUTHENTICATED", beginUpdate, batch, "nobody");
      await wire.fail("UNAUTHENTICATED", beginUpdate, batch, "nobody", headers);
      await wire.fail("PERMISSION_DENIED", beginUpdate, batch, "other");
      await wire.fail("PERMISSION_DENIED", listLeases, { cellId: wire.cell() }, "other");
    },
  },
  {
    id: "pages-of-leases",
    rules: ["W6", "R1"],
    title: "Pages of leases are not empty until the last one, and have every open lease once.",
    run: async (wire) => {
      const { context } = wire;
      const open: string[] = [];
      for (const name of context.names(5))
        open.push(await wire.granted({ createRecords: [wire.record(name)] }));
      const { json } = await context.send("GET", context.leasePath(open[0] ?? ""));
      const { lease } = json as { lease: { created_at: string } };
      const createdMs = Date.parse(lease.created_at);
      const createdAfter = {
        seconds: BigInt(Math.floor(createdMs / 1_000)),
        nanos: (createdMs % 1_000) * 1_000_000,
      };
      const listed: string[] = [];
      let next: ListLeasesResponse["next"];
      for (let pages = 0; ; pages += 1) {
        expectThat(pages < MAX_PAGES, `the list of leases has more than ${MAX_PAGES} pages`);
        const input = {
          cellId: wire.cell(),
          limit: 2,
          createdAfter,
          ...(next === undefined ? {} : { next }),
        };
        const page = await wire.ask(listLeases, input);
        const isEmpty = page.leases.length === 0 && page.next !== undefined;
        expectThat(!isEmpty, "a page of leases is empty, and says that more follow");
        listed.push(...page.leases.map(({ uuid }) => uuid?.value ?? ""));
        next = page.next;
        if (next === undefined) break;
      }
      expectThat(new Set(listed).size === listed.length, "the list of leases has a lease twice");
      expectEqual(
        listed.filter((uuid) => open.includes(uuid)),
        open,
        "the open leases of the check",
      );
      for (const uuid of open) await wire.rollBack(uuid);
    },
  },
];

/** More leases than a cell may have open, in pages of two. */
const MAX_PAGES = 10_000;

const idOf = (protocol: WireProtocol): string => protocol.toLowerCase().replace(" ", "-");

/** The binary form of an unknown field: its number is 2000, and its value 1. */
const UNKNOWN_FIELD = [0x80, 0x7d, 0x01];

export const wireChecks: readonly Check[] = [
  ...wireProtocols.flatMap((protocol) =>
    overEachProtocol.map(({ id, title, needs = [], run, ...more }): Check => ({
      ...more,
      id: `wire/${idOf(protocol)}/${id}`,
      title: `${protocol}: ${title}`,
      needs: ["wire", ...needs],
      run: (context) => run(new Wire(context, protocol)),
    })),
  ),
  {
    id: "wire/forms",
    rules: ["W2"],
    title: "An answer has the form of its request: a bucket, a claim or both.",
    needs: ["wire"],
    run: async (context) => {
      const wire = new Wire(context, "Connect");
      const name = context.name();
      const bucket = wire.bucket(name);
      const field = ClaimSchema.fields.find(({ number }) => number === bucket.type);
      if (field === undefined) throw new SkipError("proto/ has no claim of the bucket type");
      await context.own([name]);
      const claim = { claim: { case: field.localName, value: name } as Claim["claim"] };
      for (const form of [{ bucket }, { claim }, { bucket, claim }]) {
        const { record } = await wire.ask(getRecord, form);
        const { bucket: hasBucket, claim: hasClaim } = record?.metadata ?? {};
        expectEqual(
          [hasBucket !== undefined, hasClaim !== undefined],
          ["bucket" in form, "claim" in form],
          `whether the answer to ${Object.keys(form).join(" and ")} has a bucket and a claim`,
        );
      }
      const other = { bucket: wire.bucket(context.name()), claim };
      await wire.fail("INVALID_ARGUMENT", getRecord, other);
    },
  },
  {
    id: "wire/unknown-fields",
    rules: ["W7"],
    title: "Unknown fields of a binary message are ignored, and those of JSON are refused.",
    needs: ["wire"],
    run: async (context) => {
      const sent = { who: "cell" } as const;
      const { api } = context;
      const lease = { cellId: context.cellId(), leaseUuid: { value: context.newUuid() }, colour: 1 };
      const refused = await sendWire(api, "Connect JSON", commitUpdate, JSON.stringify(lease), sent);
      expectFields(refused, { code: "invalid_argument" });
      const unknown = Uint8Array.from(UNKNOWN_FIELD);
      const ignored = await sendWire(api, "Connect", ClaimService.method.getCells, unknown, sent);
      expectThat(ignored.status === 200, `an unknown field of a binary message: ${describe(ignored)}`);
    },
  },
  {
    id: "wire/malformed",
    rules: ["W5"],
    title: "A message that can't be decoded is INVALID_ARGUMENT.",
    needs: ["wire"],
    run: async (context) => {
      const { api } = context;
      for (const [protocol, raw] of [
        ["Connect", Uint8Array.from([255, 255, 255])],
        ["Connect JSON", "{"],
      ] as const) {
        const received = await sendWire(api, protocol, beginUpdate, raw, { who: "cell" });
        expectFields(received, { code: "invalid_argument" });
      }
    },
  },
];
