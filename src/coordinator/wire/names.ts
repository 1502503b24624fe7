/** Names in the protobuf: the buckets of older generations, and the claims of newer ones. */
import { create, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ok, type Result } from "../kernel/refusal.ts";
import { invalid } from "../api/batch.ts";
import { BucketSchema, ClaimSchema, type Bucket, type Claim } from "./protobuf.ts";

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
