/** The batch of a BeginUpdate, as the API takes it. */
import type * as z from "zod";
import { ok, type OpList, type Result } from "../kernel/refusal.ts";
import { invalid, keyOf, inParts } from "../api/batch.ts";
import type * as schemas from "../api/contract/schemas.ts";
import type { Deployment } from "../isolate/deployment.ts";
import type { BeginUpdateRequest, Metadata } from "./protobuf.ts";
import { nameOf, type Form, sourceIdOf, typesOf, type TypeNumber } from "./names.ts";
import type { Placed } from "./wire-call.ts";

type Batch = z.input<typeof schemas.batch>;
type ListName = "create_records" | "destroy_records";

interface Given {
  at: string;
  form: Form;
  bucket: { number: number; value: string };
  subject: { number: number; id: string } | undefined;
  source: { number: number; id: string } | undefined;
}

export interface UpdateBatch {
  batch: Batch;
  placed: Placed;
}

/**
 * Nets the two lists (W9): GitLab's cells send what each callback of a transaction saw. Names that nobody has
 * may be destroyed and replaced, because older rows were never claimed (B12).
 */
export async function batchOfUpdate(
  deployment: Deployment,
  request: BeginUpdateRequest,
): Promise<Result<UpdateBatch>> {
  const { limits } = deployment.config;
  const numbers: TypeNumber[] = [];
  const lists: Record<ListName, Given[]> = { create_records: [], destroy_records: [] };
  for (const [name, records] of [
    ["create_records", request.createRecords],
    ["destroy_records", request.destroyRecords],
  ] as const) {
    if (records.length > limits.batchOps)
      return invalid(
        `${name}[${limits.batchOps}]`,
        `is beyond the limit of ${limits.batchOps} ops; split the batch`,
      );
    for (const [index, record] of records.entries()) {
      const given = givenOf(record, `${name}[${index}]`, numbers);
      if (!given.ok) return given;
      lists[name].push(given.value);
    }
  }
  if (numbers.length === 0)
    return invalid("body", "must have at least one record in `create_records` or `destroy_records`");
  const declared = await typesOf(deployment, numbers);
  if (!declared.ok) return declared;
  const { types, nameOf: nameOfType } = declared.value;
  const { create_records: creating, destroy_records: destroying } = withoutCancelled(lists);
  // One organization for the whole update; 0 means none.
  const scope = request.organizationId === 0n ? {} : { scope: String(request.organizationId) };
  const named = ({ bucket, subject, source }: Given) => ({
    bucket: { type: nameOfType("bucket", bucket.number), value: bucket.value },
    ...(subject === undefined
      ? {}
      : { subject: { type: nameOfType("subject", subject.number), id: subject.id } }),
    ...(source === undefined ? {} : { source: { type: nameOfType("source", source.number), id: source.id } }),
  });
  // Canonicalizing names takes time, and most requests only have one of the lists.
  const hasBothLists = creating.length > 0 && destroying.length > 0;
  const both = hasBothLists ? [...creating, ...destroying] : [];
  const keys = new Map<Given, string>();
  for await (const given of inParts(both, ({ bucket }) => bucket.value)) {
    const key = keyOf(named(given).bucket, types, "", limits);
    // What is wrong with the name is found when the batch is checked.
    keys.set(given, key.ok ? `${key.value.type} ${key.value.canonical}` : given.at);
  }
  const keysOf = (list: readonly Given[]): Set<string | undefined> =>
    new Set(list.map((given) => keys.get(given)));
  const destroyed = keysOf(destroying);
  const created = keysOf(creating);
  const places: Record<OpList, Given[]> = { creates: [], destroys: [], replaces: [] };
  const batch = { creates: [] as unknown[], destroys: [] as unknown[], replaces: [] as unknown[] };
  for (const given of creating) {
    const list = hasBothLists && destroyed.has(keys.get(given)) ? "replaces" : "creates";
    batch[list].push({ ...named(given), ...scope });
    places[list].push(given);
  }
  const spellings = new Set(creating.map(({ bucket }) => JSON.stringify(bucket)));
  for (const given of destroying) {
    const missing = (["subject", "source"] as const).find((field) => given[field] === undefined);
    // Without them, the destroy of a name that was only there within the transaction looks like a change.
    if (missing !== undefined && spellings.has(JSON.stringify(given.bucket)))
      return invalid(
        `${given.at}.${missing}`,
        "is missing, and the name is also in `create_records`: send what the name was saved with",
      );
    // Only the first: a name that is twice in a list is refused.
    if (hasBothLists && created.delete(keys.get(given))) continue;
    batch.destroys.push(named(given));
    places.destroys.push(given);
  }
  return ok({
    batch: { ...batch, allow_missing: true } as Batch,
    placed: (text) =>
      text.replaceAll(
        OP,
        (whole, list: OpList, index: string, field = "") =>
          placeOf(places[list][Number(index)], field) ?? whole,
      ),
  });
}

/**
 * Leaves out records that are equal in both lists, in pairs: after such a create and destroy, in whatever
 * order, the cell has the name if it had it before (W9).
 */
function withoutCancelled(lists: Record<ListName, Given[]>): Record<ListName, Given[]> {
  const factsOf = ({ bucket, subject, source }: Given): string => JSON.stringify([bucket, subject, source]);
  const destroys = Map.groupBy(lists.destroy_records, factsOf);
  const cancelled = new Set<Given>();
  for (const created of lists.create_records) {
    const destroyed = destroys.get(factsOf(created))?.pop();
    if (destroyed !== undefined) cancelled.add(created).add(destroyed);
  }
  const isLeft = (given: Given): boolean => !cancelled.has(given);
  return {
    create_records: lists.create_records.filter(isLeft),
    destroy_records: lists.destroy_records.filter(isLeft),
  };
}

/** An op of the API's batch, with the field that has another name in the protobuf. */
const OP = /\b(creates|destroys|replaces)\[(\d+)\](\.bucket(?:\.value)?|\.source\.id)?/g;

function placeOf(given: Given | undefined, field: string): string | undefined {
  if (given === undefined) return undefined;
  if (field === ".source.id") return `${given.at}.source.rails_primary_key_id`;
  return given.at + (field !== "" && given.form !== "bucket" ? ".claim" : field);
}

function givenOf(record: Metadata, at: string, numbers: TypeNumber[]): Result<Given> {
  const name = nameOf(record, at);
  if (!name.ok) return name;
  const { number, value, field, form } = name.value;
  numbers.push({ kind: "bucket", number, field });
  const { subject, source } = record;
  if (subject !== undefined)
    numbers.push({ kind: "subject", number: subject.type, field: `${at}.subject.type` });
  if (source !== undefined) numbers.push({ kind: "source", number: source.type, field: `${at}.source.type` });
  const id = source && sourceIdOf(source.railsPrimaryKeyId, `${at}.source.rails_primary_key_id`);
  if (id?.ok === false) return id;
  return ok({
    at,
    form,
    bucket: { number, value },
    subject: subject && { number: subject.type, id: String(subject.id) },
    source: source && id && { number: source.type, id: id.value },
  });
}
