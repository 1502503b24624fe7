import { resolved, type Entry, type Schema, type Schemas } from "./document.ts";

const UUID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";

/** A sample value for a schema. It has only the required fields. */
export function sampleOf(schemas: Schemas, schema: Schema, name = ""): unknown {
  const {
    type,
    examples,
    enum: values,
    anyOf,
    items,
    properties,
    required,
    format,
  } = resolved(schemas, schema);
  if (schema.const !== undefined) return schema.const;
  if (examples !== undefined) return examples[0];
  if (values !== undefined) return values[0];
  if (anyOf?.[0] !== undefined)
    return anyOf.some((each) => each.type === "null") ? null : sampleOf(schemas, anyOf[0], name);
  if (type === "object")
    return Object.fromEntries(
      (required ?? []).map((field) => [field, sampleOf(schemas, properties?.[field] ?? {}, field)]),
    );
  if (type === "array") return [sampleOf(schemas, items ?? {}, name)];
  if (Array.isArray(type)) return null;
  if (type === "integer") return 1;
  if (type === "boolean") return true;
  return format === "uuid" ? UUID : (SAMPLES[name] ?? "…");
}

const SAMPLES: Readonly<Record<string, string>> = {
  id: UUID,
  note: "deployed with ansible",
  name: "Europe 1",
  address: "https://cell-7.example.com",
  version: "0.2.0",
  placement: "hash1.shards16.canonical1",
  next_page_token: "",
  docs: "/docs",
  openapi: "/openapi.json",
  key: "lhk_eyJ2IjoxLCJpZCI6….x1Y2z3…",
};

/** The call as a `curl` command. */
export function curlOf({ method, path, operation }: Entry): string {
  const parameters = operation.parameters ?? [];
  const filled = parameters.reduce(
    (made, { name, in: location, example }) =>
      location === "path" ? made.replace(`{${name}}`, String(example ?? name)) : made,
    path,
  );
  const query = parameters
    .flatMap(({ name, in: location, example }) =>
      location === "query" && example !== undefined ? [`${name}=${example}`] : [],
    )
    .join("&");
  const body = operation.requestBody?.content["application/json"].example;
  const url = `$LEASEHOLD_URL${filled}${query === "" ? "" : `?${query}`}`;
  const lines = [
    ...(method === "GET" ? [`curl "${url}"`] : [`curl -X ${method}`, `"${url}"`]),
    ...(operation["x-roles"].length === 0 ? [] : ['-H "Authorization: Bearer $KEY"']),
    ...(body === undefined
      ? []
      : ['-H "Content-Type: application/json"', `-d '${JSON.stringify(body, null, 2)}'`]),
  ];
  return lines.join(" \\\n  ");
}
