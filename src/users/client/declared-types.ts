/**
 * Makes the names of your own types known to the compiler. Without it, the SDK knows the types that Leasehold
 * ships.
 *
 * @example
 * ```ts
 * import type types from "./leasehold.types.json";
 *
 * declare module "leasehold/client" {
 *   interface Register {
 *     types: typeof types;
 *   }
 * }
 * ```
 */
// It is empty until an application adds its types.
// oxlint-disable-next-line typescript/no-empty-interface, typescript/no-empty-object-type
export interface Register {}

/** The names in a list of the registered types, or those that Leasehold ships. */
export type DeclaredNames<List extends string, Shipped extends string> = Register extends {
  types: Record<List, infer Names>;
}
  ? keyof Names & string
  : Shipped;
