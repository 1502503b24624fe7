/** The types of names that the coordinator and the cells of the example use. */
import { join } from "node:path";
import type { TypesDocument } from "leasehold/cell";
import type { Client } from "leasehold/client";
import { declareTypes, readTypesFile } from "../../../src/cli/files/types-file.ts";
import exampleTypes from "../leasehold.types.json" with { type: "json" };

const EXAMPLE_FILE = join(import.meta.dirname, "../leasehold.types.json");
const LISTS = ["bucket_types", "subject_types", "source_types"] as const;

/** Reads a types file. Throws if it lacks types that the example's tables use. */
export async function readTypes(file = EXAMPLE_FILE): Promise<TypesDocument> {
  const types = await readTypesFile(file);
  const missing = LISTS.flatMap((list) =>
    Object.keys(exampleTypes[list])
      .filter((name) => !Object.hasOwn(types[list], name))
      .map((name) => `${list}.${name}`),
  );
  if (missing.length > 0)
    throw new Error(
      `${file} lacks types that the example's tables use: ${missing.join(", ")}; ` +
        "examples/cell/leasehold.types.json declares them",
    );
  return types;
}

/** Declares the types at the coordinator. Throws if they contradict names that it stores already. */
export async function applyTypes(operator: Pick<Client, "types">, types: TypesDocument): Promise<void> {
  const { lines, isRefused } = await declareTypes(operator, types, false);
  if (isRefused) throw new Error(`the coordinator refuses the types:\n${lines.join("\n")}`);
}
