/**
 * The oldest generation of the protobuf gave some field numbers to other types. A request of it is rewritten
 * before it is decoded, and an answer gets the fields in the old form.
 */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { toBinary, type UnknownField } from "@bufbuild/protobuf";
import { AnySchema, type Any } from "@bufbuild/protobuf/wkt";
import { bytesOfSourceId } from "./names.ts";

/** What is done with fields: they are messages to rewrite, or an int64 that becomes the bytes of an id. */
type Plan = ReadonlyMap<number, Plan | "id">;

const metadata: ReadonlyMap<number, Plan> = new Map([[3, new Map([[2, "id" as const]])]]);
const beginUpdate: ReadonlyMap<number, Plan> = new Map([
  [1, metadata],
  [2, metadata],
]);

/** Where `next` and `limit` of ListRecords are in our message, by their old numbers. */
const MOVED: ReadonlyMap<number, number> = new Map([
  [3, 1003],
  [4, 1004],
]);

/** Rewrites a message of the method, if it is of the oldest generation. */
export function modernized(method: string, message: Uint8Array): Uint8Array {
  if (method === "BeginUpdate")
    return hasOldId(new BinaryReader(message), message.length, beginUpdate)
      ? rewritten(message, beginUpdate)
      : message;
  return method === "ListRecords" && isOldList(message) ? moved(message) : message;
}

/** A tag of a message, and the bytes of its value. */
interface Field {
  no: number;
  type: WireType;
  value: Uint8Array;
}

function* fieldsOf(message: Uint8Array): Generator<Field> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [no, type] = reader.tag();
    yield { no, type, value: reader.skip(type, no) };
  }
}

/** Searches a message that ends at `end`. Every begin is searched, so nothing is copied. */
function hasOldId(reader: BinaryReader, end: number, plan: Plan): boolean {
  while (reader.pos < end) {
    const [no, type] = reader.tag();
    const next = plan.get(no);
    if (next === "id" && type === WireType.Varint) return true;
    if (isPlanOf(next, type)) {
      const length = reader.uint32();
      if (hasOldId(reader, reader.pos + length, next)) return true;
    } else reader.skip(type, no);
  }
  return false;
}

function rewritten(message: Uint8Array, plan: Plan): Uint8Array {
  const writer = new BinaryWriter();
  for (const { no, type, value } of fieldsOf(message)) {
    const next = plan.get(no);
    if (next === "id" && type === WireType.Varint) {
      const id = BigInt(new BinaryReader(value).int64());
      writer.tag(no, WireType.LengthDelimited).bytes(bytesOfSourceId(String(id)));
    } else if (isPlanOf(next, type)) writer.tag(no, type).bytes(rewritten(bytesOf(value), next));
    else writer.tag(no, type).raw(value);
  }
  return writer.finish();
}

const isPlanOf = (plan: Plan | "id" | undefined, type: WireType): plan is Plan =>
  plan instanceof Map && type === WireType.LengthDelimited;

const bytesOf = (value: Uint8Array): Uint8Array => new BinaryReader(value).bytes();

/**
 * Newer generations always send a range or types of claims. In the oldest one, 4 is a whole number instead of
 * the bytes of an id.
 */
function isOldList(message: Uint8Array): boolean {
  const fields = [...fieldsOf(message)];
  if (fields.some(({ no, type }) => no === 4 && type === WireType.Varint)) return true;
  return !fields.some(({ no }) => no >= 4);
}

function moved(message: Uint8Array): Uint8Array {
  const writer = new BinaryWriter();
  for (const { no, type, value } of fieldsOf(message)) writer.tag(MOVED.get(no) ?? no, type).raw(value);
  return writer.finish();
}

/** `next` of a list of records, as the oldest generation reads it. */
export const oldNext = (next: Any): UnknownField => ({
  no: 2,
  wireType: WireType.LengthDelimited,
  data: new BinaryWriter().bytes(toBinary(AnySchema, next)).finish(),
});

/** An id of a source, as the oldest generation reads it. */
export const oldSourceId = (id: string): UnknownField => ({
  no: 2,
  wireType: WireType.Varint,
  data: new BinaryWriter().int64(id).finish(),
});
