/**
 * For each file that a planted bug changes, what chooses between the file as it is and its variants.
 * `bundle.ts` adds these to the simulator.
 */
export const plantings: ((bug: string | undefined) => void)[] = [];

type Exported = Record<string, unknown>;

const KINDS = ["ledger", "shard", "directory"] as const;

const isHalf = (value: unknown): value is object =>
  typeof value === "object" && value !== null && "make" in value;

const halvesOf = (value: unknown): (readonly [string, object])[] =>
  KINDS.flatMap((kind) => {
    const half = (value as Partial<Record<string, object>> | undefined)?.[kind];
    return isHalf(half) ? [[kind, half] as const] : [];
  });

/**
 * Copies the capabilities and halves that a module exports, because the list of all of them keeps what it
 * has read.
 *
 * @public
 */
export const copyOf = (module: Exported): Exported =>
  Object.fromEntries(
    Object.entries(module).map(([name, value]) => {
      if (isHalf(value)) return [name, { ...value }];
      const halves = halvesOf(value).map(([kind, half]) => [kind, { ...half }] as const);
      return [name, halves.length === 0 ? value : { ...(value as object), ...Object.fromEntries(halves) }];
    }),
  );

/**
 * Returns the exports of a variant. Capabilities that were listed get its halves, and halves what it has.
 *
 * @public
 */
export function plant(listed: Exported, variant: Exported): Exported {
  return Object.fromEntries(
    Object.entries(variant).map(([name, value]) => {
      if (isHalf(value)) return [name, Object.assign(listed[name] as object, value)];
      for (const [kind, half] of halvesOf(value))
        Object.assign((listed[name] as Record<string, object>)[kind] ?? {}, half);
      return [name, halvesOf(value).length === 0 ? value : listed[name]];
    }),
  );
}
