import { expect, expectTypeOf, it } from "vitest";
import type * as z from "zod";
import type * as api from "../../../src/users/client/api-types.ts";
import { operations } from "../../../src/users/client/api-types.ts";
import { routes, type Routes } from "../../../src/coordinator/api/contract.ts";
import type * as schemas from "../../../src/coordinator/api/contract/schemas.ts";

type TypeName = api.BucketType | api.SubjectType | api.SourceType;

/**
 * A type as JSON has it: lists may be read-only, and optional fields may be undefined. The names of types are
 * any text in the contract, and those of the deployment in the client.
 */
type Json<T> = T extends TypeName
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Json<Item>[]
    : T extends object
      ? {
          [Name in keyof T]: undefined extends T[Name]
            ? Json<Exclude<T[Name], undefined>> | undefined
            : Json<T[Name]>;
        }
      : T;

type Given<Schema extends z.ZodType> = Json<z.input<Schema>>;
type Shown<Schema extends z.ZodType> = Json<z.output<Schema>>;

it("has the types of the contract", () => {
  expectTypeOf<Given<typeof schemas.batch>>().toEqualTypeOf<Json<api.Batch>>();
  expectTypeOf<Given<typeof schemas.bucket>>().toEqualTypeOf<Json<api.Bucket>>();
  expectTypeOf<Shown<typeof schemas.lease>>().toEqualTypeOf<Json<api.Lease>>();
  expectTypeOf<Shown<typeof schemas.wholeRecord>>().toEqualTypeOf<Json<api.ClaimRecord>>();
  expectTypeOf<Shown<typeof schemas.foreignRecord>>().toEqualTypeOf<Json<api.ForeignRecord>>();
  expectTypeOf<Shown<typeof schemas.problem>>().toEqualTypeOf<Json<api.Problem>>();
  expectTypeOf<NonNullable<Shown<typeof schemas.problem>["conflicts"]>[number]>().toEqualTypeOf<
    Json<api.Conflict>
  >();
  expectTypeOf<Shown<typeof schemas.cell>>().toEqualTypeOf<Json<api.Cell>>();
  expectTypeOf<Shown<typeof schemas.key>>().toEqualTypeOf<Json<api.Key>>();
  expectTypeOf<Shown<typeof schemas.mintedKey>>().toEqualTypeOf<Json<api.MintedKey>>();
});

type OperationId = keyof api.Operations;
type Success<Id extends OperationId> = Id extends keyof Routes
  ? Routes[Id]["responses"][keyof Routes[Id]["responses"] & (200 | 201)]
  : never;
type Contracted<Id extends OperationId> =
  Success<Id> extends { schema: infer Schema extends z.ZodType } ? Shown<Schema> : never;
/** Operations whose answer differs from the contract. */
type Differing = {
  [Id in OperationId]: [Contracted<Id>, Json<api.Operations[Id]["answer"]>] extends [infer A, infer B]
    ? [A, B] extends [B, A]
      ? never
      : Id
    : Id;
}[OperationId];

it("answers what the contract answers, for every operation", () => {
  expectTypeOf<Differing>().toBeNever();
});

it("has the routes of the contract", () => {
  for (const [id, { method, path }] of Object.entries(operations))
    expect({ method, path }).toEqual({
      method: routes[id as OperationId].method,
      path: routes[id as OperationId].path,
    });
});
