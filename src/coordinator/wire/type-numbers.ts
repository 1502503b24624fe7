/** Finds the names of types, which the protobuf has as numbers. */
import { ok, type Result } from "../kernel/refusal.ts";
import type { TypeKind, Types } from "../../common/types/types.ts";
import { invalid } from "../api/batch.ts";
import type { Deployment } from "../isolate/deployment.ts";

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
