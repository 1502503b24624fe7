import * as z from "zod";
import { changeEvents } from "../messages.ts";
import {
  bucketType,
  cellId,
  nothing,
  pageSize,
  time,
  wholeNumber,
  positionsOf,
  positionsText,
} from "../../../api/contract/fields.ts";
import { route, tooManyReads } from "../../../api/contract/route.ts";
import { bucket, point, scope, source, subject } from "../../../api/contract/schemas.ts";

/** The longest time of one stream, in seconds. Then the client connects again. */
export const STREAM_S = 300;

/** How long a watch waits before it asks the shards again when nothing happens, in seconds. */
export const POLL_S = 1;

const checkpoint = positionsText(
  "Positions of shards, as pairs `shard:position` with commas between them: everything up to them has " +
    "been told.",
);

const after = positionsOf(
  "The `checkpoint` from which to continue. A shard that it leaves out is read from its first change, when " +
    "the others have nothing more. " +
    "Left out: nothing is told but the newest positions.",
);

const claim = z
  .strictObject({
    uuid: z.uuid().meta({ description: "Stays the same from the claim's first period to its release." }),
    bucket: bucket.optional(),
    subject: subject.optional(),
    source: source.optional(),
    scope,
  })
  .meta({
    id: "ChangedClaim",
    description:
      "The claim as it is after the change, or as it was before its release. Only `uuid` is present if the " +
      "past of the name was erased.",
  });

export const change = z
  .strictObject({
    id: z.string().meta({ description: "Identifies the change. A change that is told twice has it twice." }),
    event: z.enum(changeEvents).meta({
      description:
        "What happened: a lease was `granted`, `committed` or `rolled_back` on this shard, or a claim was " +
        "`claimed`, `replaced`, `moved` to another cell by a transfer, or `released`.",
    }),
    shard: wholeNumber,
    position: wholeNumber.meta({ description: "Orders the changes of a shard." }),
    at: time.meta({ description: "When the shard carried it out, by its clock." }),
    cell_id: cellId.meta({ description: "The cell whose lease did it." }),
    lease_uuid: z.string(),
    epoch: wholeNumber.meta({
      description:
        "Of a claim: the epoch that it has, or had before its release. Of a lease: that of its holds on " +
        "this shard.",
    }),
    claim: claim.optional(),
  })
  .meta({ id: "Change", description: "Something that happened to a lease or a claim on a shard." });

const unavailable = z.array(wholeNumber).meta({
  description:
    "The shards that could not be read, or have not reached their position in `after`. Their changes " +
    "follow later: nothing is left out.",
});

const ranges = z.array(z.strictObject({ shard: wholeNumber, after: point, through: point })).meta({
  description:
    "What was read of each shard, from point to point. Usually, `after` is the `through` of the page " +
    "before. If it has another incarnation than that, the shard has gone back in time between the two pages.",
});

const exampleChange = {
  id: "claimed:3:4711:3f0f4c5e-8f2e-4b8e-9a35-2f0c8a1d7e11",
  event: "claimed" as const,
  shard: 3,
  position: 4_712,
  at: "2026-11-28T12:00:00.250Z",
  cell_id: "7",
  lease_uuid: "0b0e8a52-5c0f-4b5e-9a35-2f0c8a1d7e11",
  epoch: 4_711,
  claim: {
    uuid: "3f0f4c5e-8f2e-4b8e-9a35-2f0c8a1d7e11",
    bucket: { type: "USERNAMES", value: "ada" },
    subject: { type: "USER", id: "1" },
    source: { type: "RAILS_TABLE_USERS", id: "1" },
  },
};

const exampleRange = {
  shard: 3,
  after: { incarnation: 117_440_513, position: 4_710 },
  through: { incarnation: 117_440_513, position: 4_712 },
};

export const changeRoutes = {
  listChanges: route({
    group: "changes",
    method: "GET",
    path: "/v1/changes",
    summary: "Follow what happens to leases and claims",
    about:
      "Tells every grant, commit, rollback, claim and release, in order for each shard. The changes of " +
      "different shards have no order. Save the `checkpoint` when you have handled a page, and continue " +
      "from it with `after`. A change can come twice, and then has the same `id`. A cell gets the changes " +
      "that its own leases made, and those that moved its claims to another cell.\n\n" +
      "With `Accept: text/event-stream`, the answer is a stream of server-sent events. Each change is an " +
      "event of its type. `checkpoint` events have the checkpoint as their id, so a client that connects " +
      `again with \`Last-Event-ID\` misses nothing. A stream ends after ${STREAM_S / 60} minutes at the ` +
      "latest, or with a `problem` event.",
    roles: ["cell", "operator", "viewer"],
    params: nothing,
    query: z.strictObject({
      after: after.optional(),
      cell: cellId.optional().meta({
        description: "Only changes that leases of this cell made. A cell gets no others in any case.",
      }),
      bucket_type: bucketType.optional().meta({
        description: "Only claims of names of this type. Leases are left out, because they have many types.",
      }),
      page_size: pageSize.optional(),
    }),
    events: {
      parameter: "after",
      schema: change,
      example: [
        {
          event: "checkpoint",
          id: "3:4710",
          data: { checkpoint: "3:4710", ranges: [], unavailable: [] },
        },
        { event: "claimed", data: exampleChange },
        {
          event: "checkpoint",
          id: "3:4712",
          data: { checkpoint: "3:4712", ranges: [exampleRange], unavailable: [] },
        },
      ],
    },
    responses: {
      200: {
        about: "A page of changes.",
        schema: z.strictObject({
          changes: z.array(change).meta({
            description:
              "Of each shard in order. A page does not end within the changes of one position, so it may " +
              "be larger than `page_size`.",
          }),
          checkpoint,
          has_more: z.boolean().meta({ description: "True: more changes can be read at once." }),
          ranges,
          unavailable,
        }),
        example: {
          changes: [exampleChange],
          checkpoint: "3:4712",
          has_more: false,
          ranges: [exampleRange],
          unavailable: [],
        },
      },
    },
    errors: [
      {
        code: "FAILED_PRECONDITION",
        reason: "CHANGES_PRUNED",
        status: 410,
        when:
          "A shard no longer has all changes after its position. Read the newest positions, then export " +
          "the records, and continue from these positions.",
      },
      { code: "UNAVAILABLE", when: "No shard can be read. Without `after`: some shard can't be read." },
      {
        code: "RESOURCE_EXHAUSTED",
        reason: "TOO_MANY_STREAMS",
        when: "Too many streams are open, or too many with this key. Try again after `Retry-After`.",
      },
      tooManyReads,
    ],
    example: { query: { after: "3:4710" } },
  }),
};
