/**
 * For each file that a planted bug changes, what chooses between the file as it is and its variants.
 * `bundle.ts` adds these to the simulator.
 */
export const plantings: ((bug: string | undefined) => void)[] = [];

type Exported = Record<string, unknown>;

const KINDS = ["ledger", "shard", "directory"] as const;

const halvesOf = (value: unknown): (readonly [string, object])[] =>
  KINDS.flatMap((kind) => {
    const half = (value as Partial<Record<string, object>> | undefined)?.[kind];
    return typeof half === "object" && "make" in half ? [[kind, half] as const] : [];
  });

/**
 * Copies the capabilities that a module exports, because the list of all of them keeps what it has read.
 *
 * @public
 */
export const copyOf = (module: Exported): Exported =>
  Object.fromEntries(
    Object.entries(module).map(([name, value]) => {
      const halves = halvesOf(value).map(([kind, half]) => [kind, { ...half }] as const);
      return [name, halves.length === 0 ? value : { ...(value as object), ...Object.fromEntries(halves) }];
    }),
  );

/**
 * Returns the exports of a variant. Capabilities that were listed get its halves.
 *
 * @public
 */
export function plant(listed: Exported, variant: Exported): Exported {
  return Object.fromEntries(
    Object.entries(variant).map(([name, value]) => {
      for (const [kind, half] of halvesOf(value))
        Object.assign((listed[name] as Record<string, object>)[kind] ?? {}, half);
      return [name, halvesOf(value).length === 0 ? value : listed[name]];
    }),
  );
}
