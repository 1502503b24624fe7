/** Names in the protobuf: the buckets of older generations, and the claims of newer ones. */
import { create, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ok, type Result } from "../kernel/refusal.ts";
import { invalid } from "../api/batch.ts";
import { BucketSchema, ClaimSchema, type Bucket, type Claim } from "./protobuf.ts";
import type { TypeKind, Types } from "../../common/types/types.ts";
import type { Deployment } from "../isolate/deployment.ts";
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";

/** A name with the number of its type. */
export interface NumberedName {
  number: number;
  value: string;
  /** The place of its type in the request. */
  field: string;
  /** The generation that asked gets this form. */
  form: Form;
}

/** In between, clients sent and read both. */
export type Form = "bucket" | "claim" | "both";

interface Named {
  bucket?: Bucket | undefined;
  claim?: Claim | undefined;
}

/** Reads the name of a message. If it has both forms, they must be the same name. */
export function nameOf({ bucket, claim }: Named, at: string): Result<NumberedName> {
  const prefix = at === "" ? "" : `${at}.`;
  const asBucket = bucket && {
    number: bucket.type,
    value: bucket.value,
    field: `${prefix}bucket.type`,
    form: "bucket" as const,
  };
  if (claim === undefined)
    return asBucket === undefined ? invalid(`${prefix}claim`, "is required") : ok(asBucket);
  const asClaim = nameOfClaim(claim, `${prefix}claim`);
  if (!asClaim.ok || asBucket === undefined) return asClaim;
  return asBucket.number === asClaim.value.number && asBucket.value === asClaim.value.value
    ? ok({ ...asClaim.value, form: "both" })
    : invalid(`${prefix}bucket`, "must be the same name as `claim`");
}

/**
 * A claim of a type that this version doesn't know is an unknown field, whose number is that of the type. The
 * deployment may have declared it.
 */
export function nameOfClaim({ claim, $unknown = [] }: Claim, field: string): Result<NumberedName> {
  const named = { field, form: "claim" as const };
  if (claim.case !== undefined) {
    const number = ClaimSchema.field[claim.case]?.number ?? 0;
    return ok({ ...named, number, value: String(claim.value) });
  }
  const [unknown] = $unknown;
  if (unknown === undefined) return invalid(field, "must have a name");
  const { no, wireType, data } = unknown;
  if (wireType === WireType.LengthDelimited)
    return ok({ ...named, number: no, value: new BinaryReader(data).string() });
  if (wireType === WireType.Varint)
    return ok({ ...named, number: no, value: String(new BinaryReader(data).int64()) });
  return invalid(field, `has the field ${no} in a form that no claim has`);
}

/** Makes the name of an answer. `number` is that of its type. */
export function namedAs(form: Form, number: number, value: string, int64Of: (text: string) => bigint): Named {
  const bucket = form === "claim" ? undefined : create(BucketSchema, { type: number, value });
  if (form === "bucket") return { bucket };
  const field = ClaimSchema.fields.find((each) => each.number === number);
  const claim = create(ClaimSchema);
  if (field?.fieldKind === "scalar")
    claim.claim = {
      case: field.localName,
      value: field.scalar === ScalarType.INT64 ? int64Of(value) : value,
    } as Claim["claim"];
  else {
    const data = new BinaryWriter().string(value).finish();
    claim.$unknown = [{ no: number, wireType: WireType.LengthDelimited, data }];
  }
  return { bucket, claim };
}

export interface TypeNumber {
  kind: TypeKind;
  number: number;
  /** Its place in the request. */
  field: string;
}

/** The types of a request, all of which are declared. */
export interface DeclaredTypes {
  types: Types;
  nameOf: (kind: TypeKind, number: number) => string;
}

/** All numbers must be declared. Some may be newer than this isolate's copy, so it may ask the directory. */
export async function typesOf(
  { types }: Pick<Deployment, "types">,
  numbers: readonly TypeNumber[],
): Promise<Result<DeclaredTypes>> {
  const zero = numbers.find(({ number }) => number === 0);
  if (zero !== undefined) return invalid(zero.field, "is required");
  let known = types.current;
  if (
    known === undefined ||
    numbers.some(({ kind, number }) => known?.numbered(kind, number) === undefined)
  ) {
    const read = await types.read();
    if (!read.ok) return read;
    known = read.value.types;
  }
  const declared = known;
  const unknown = numbers.find(({ kind, number }) => declared.numbered(kind, number) === undefined);
  if (unknown !== undefined)
    return invalid(unknown.field, `has the ${unknown.kind} type ${unknown.number}, which is not declared`);
  return ok({ types: declared, nameOf: (kind, number) => declared.numbered(kind, number)?.name ?? "" });
}

/*
 * The ids of sources in the protobuf are bytes: 8 of a whole number, big-endian, 16 of a UUID, or the UTF-8
 * of anything else. Their order as bytes is the order in which records are listed.
 */

const INTEGER_BYTES = 8;
const UUID_BYTES = 16;
const MAX_INTEGER = 2n ** 64n - 1n;
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;
const DECIMAL = /^(?:0|[1-9]\d*)$/;

export function sourceIdOf(bytes: Uint8Array, field: string): Result<string> {
  if (bytes.length === INTEGER_BYTES) return ok(String(viewOf(bytes).getBigUint64(0)));
  if (bytes.length === UUID_BYTES)
    return ok(bytesToHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"));
  try {
    return ok(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return invalid(field, "must be 8 bytes of a whole number, 16 of a UUID, or UTF-8");
  }
}

export function bytesOfSourceId(id: string): Uint8Array {
  if (DECIMAL.test(id) && BigInt(id) <= MAX_INTEGER) {
    const bytes = new Uint8Array(INTEGER_BYTES);
    viewOf(bytes).setBigUint64(0, BigInt(id));
    return bytes;
  }
  if (UUID.test(id)) return hexToBytes(id.replaceAll("-", ""));
  return new TextEncoder().encode(id);
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);
