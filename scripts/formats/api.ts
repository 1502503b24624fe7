/** The contract of the HTTP API without its prose, and its comparison with that of a release. */
import { readFileSync } from "node:fs";
import type { Difference } from "./difference.ts";

/** The part of JSON Schema that the contract uses. */
interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  items?: Schema | false;
  prefixItems?: readonly Schema[];
  contentSchema?: Schema;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: Schema | boolean;
  [limit: string]: unknown;
}

type Content = Readonly<Record<string, { schema?: Schema }>>;

interface Operation {
  /** Who may call it. Undefined: everybody. */
  "x-roles"?: readonly string[];
  parameters?: readonly { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { required?: boolean; content: Content };
  responses: Readonly<Record<string, { content?: Content; headers?: Readonly<Record<string, unknown>> }>>;
}

export interface Api {
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  components: { schemas: Readonly<Record<string, Schema>> };
}

const PROSE: ReadonlySet<string> = new Set(
  "description summary examples example tags operationId security x-errors".split(" "),
);
/** The members of their values have names of the contract, which may be the same as those above. */
const NAMED: ReadonlySet<string> = new Set(["properties", "headers", "schemas"]);

/** Reads `openapi.json`, which `npm run check:generated` compares with the code. */
export function apiOfToday(): Api {
  const { paths, components } = JSON.parse(
    readFileSync(new URL("../../openapi.json", import.meta.url), "utf8"),
  ) as Api;
  return withoutProse({ paths, components: { schemas: components.schemas } }) as Api;
}

function withoutProse(value: unknown, areNames = false): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => withoutProse(each));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => areNames || !PROSE.has(name))
      .map(([name, each]) => [name, withoutProse(each, !areNames && NAMED.has(name))]),
  );
}

/** Returns what would break a client or a server of the release. */
export function apiDifferences(release: Api, today: Api): Difference[] {
  const differences: Difference[] = [];
  for (const [path, methods] of Object.entries(release.paths))
    for (const [method, before] of Object.entries(methods)) {
      const what = `${method.toUpperCase()} ${path}`;
      const now = today.paths[path]?.[method];
      const faults =
        now === undefined ? ["it was removed"] : operationFaults(before, now, { release, today });
      differences.push(...[...new Set(faults)].map((fault) => ({ what, fault })));
    }
  return differences;
}

interface Contracts {
  release: Api;
  today: Api;
}

/** Whether schemas are of requests, which a client of the release writes, or of answers, which it reads. */
type Direction = "request" | "answer";

function operationFaults(release: Operation, today: Operation, contracts: Contracts): string[] {
  const request = new Comparison(contracts, "request");
  const answer = new Comparison(contracts, "answer");
  const faults = lostRoles(release["x-roles"], today["x-roles"]).map(
    (role) => `${role} may no longer call it`,
  );
  const parameters = new Map(
    today.parameters?.map((each) => [`${each.in} parameter \`${each.name}\``, each]),
  );
  for (const before of release.parameters ?? []) {
    const place = `${before.in} parameter \`${before.name}\``;
    const now = parameters.get(place);
    parameters.delete(place);
    if (now === undefined) faults.push(`the ${place} was removed`);
    else {
      if (now.required === true && before.required !== true) faults.push(`the ${place} is now required`);
      faults.push(...request.faults(before.schema, now.schema, place));
    }
  }
  for (const [place, { required }] of parameters)
    if (required === true) faults.push(`the new ${place} is required`);
  if (today.requestBody?.required === true && release.requestBody?.required !== true)
    faults.push("the body is now required");
  faults.push(...contentFaults(request, release.requestBody?.content, today.requestBody?.content, "body"));
  for (const [status, before] of Object.entries(release.responses)) {
    const now = today.responses[status];
    if (now === undefined) faults.push(`the status ${status} was removed`);
    else {
      for (const name of Object.keys(before.headers ?? {}))
        if (now.headers?.[name] === undefined) faults.push(`${status}: the header \`${name}\` was removed`);
      faults.push(...contentFaults(answer, before.content, now.content, status));
    }
  }
  return faults;
}

const lostRoles = (release?: readonly string[], today?: readonly string[]): string[] =>
  today === undefined ? [] : notIn(release ?? ["everybody"], today);

function contentFaults(
  comparison: Comparison,
  release: Content = {},
  today: Content = {},
  place: string,
): string[] {
  return Object.entries(release).flatMap(([type, { schema = {} }]) => {
    const now = today[type];
    return now === undefined
      ? [`${place}: ${type} was removed`]
      : comparison.faults(schema, now.schema ?? {}, place);
  });
}

/** By keyword: 1 if a smaller limit is narrower, and -1 if a larger one is. */
const LIMITS: Readonly<Record<string, 1 | -1>> = {
  maximum: 1,
  maxLength: 1,
  maxItems: 1,
  maxProperties: 1,
  minimum: -1,
  minLength: -1,
  minItems: -1,
  minProperties: -1,
};

/** Compares the schemas of one direction. */
class Comparison {
  readonly #contracts: Contracts;
  readonly #direction: Direction;
  /** The pairs of named schemas that are being compared. */
  readonly #open = new Set<string>();

  constructor(contracts: Contracts, direction: Direction) {
    this.#contracts = contracts;
    this.#direction = direction;
  }

  faults(release: Schema, today: Schema, place: string): string[] {
    const pair = `${release.$ref} ${today.$ref}`;
    if (this.#open.has(pair)) return [];
    if (release.$ref !== undefined && today.$ref !== undefined) this.#open.add(pair);
    const [before, now] = [named(this.#contracts.release, release), named(this.#contracts.today, today)];
    const faults =
      before.anyOf === undefined && now.anyOf === undefined
        ? this.#ofOne(before, now, place)
        : this.#ofAlternatives(before.anyOf ?? [before], now.anyOf ?? [now], place);
    this.#open.delete(pair);
    return faults;
  }

  /** Each alternative that is written must be one that is read. */
  #ofAlternatives(release: readonly Schema[], today: readonly Schema[], place: string): string[] {
    const isRequest = this.#direction === "request";
    const [written, read] = isRequest ? [release, today] : [today, release];
    return written.flatMap((one, index) => {
      const faultsWith = (other: Schema): string[] =>
        isRequest ? this.faults(one, other, place) : this.faults(other, one, place);
      if (read.some((other) => faultsWith(other).length === 0)) return [];
      const other = read[index];
      return other === undefined
        ? [`\`${place}\` has ${isRequest ? "lost an alternative" : "a new alternative"}`]
        : faultsWith(other);
    });
  }

  #ofOne(release: Schema, today: Schema, place: string): string[] {
    const isRequest = this.#direction === "request";
    const faults = isRequest ? requestFaults(release, today) : answerFaults(release, today);
    const fields = Object.entries(release.properties ?? {}).flatMap(([name, before]) => {
      const now = today.properties?.[name];
      const at = `${place}.${name}`;
      return now === undefined ? [`\`${at}\` was removed`] : this.faults(before, now, at);
    });
    const parts = partsOf(release).flatMap(([name, before]) => {
      const now = new Map(partsOf(today)).get(name);
      return now === undefined ? [] : this.faults(before, now, `${place}${name}`);
    });
    return [...faults.map((fault) => `\`${place}\` ${fault}`), ...fields, ...parts];
  }
}

function named({ components }: Api, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const found = components.schemas[schema.$ref.replace("#/components/schemas/", "")];
  if (found === undefined) throw new Error(`there is no schema ${schema.$ref}`);
  return found;
}

/** The schemas within a schema, other than those of its fields. */
const partsOf = ({
  items,
  prefixItems = [],
  contentSchema,
  additionalProperties,
}: Schema): [string, Schema][] => [
  ...prefixItems.map((each, index): [string, Schema] => [`[${index}]`, each]),
  ...Object.entries({ "[]": items, "{}": additionalProperties, " (each line)": contentSchema }).flatMap(
    ([name, each]): [string, Schema][] => (typeof each === "object" ? [[name, each]] : []),
  ),
];

const typesOf = ({ type }: Schema): readonly string[] | undefined =>
  type === undefined ? undefined : [type].flat();
const valuesOf = (schema: Schema): readonly unknown[] | undefined =>
  "const" in schema ? [schema.const] : schema.enum;
const notIn = <T>(some: readonly T[] = [], others: readonly T[] | undefined): T[] =>
  others === undefined ? [] : some.filter((each) => !others.includes(each));

/** Why this code would refuse a value that the release takes. */
function requestFaults(release: Schema, today: Schema): string[] {
  const isSet = (name: string): boolean => today[name] !== undefined;
  const isNarrower = ([name, sign]: [string, number]): boolean =>
    isSet(name) && !(sign * Number(release[name]) <= sign * Number(today[name]));
  const isOpen = release.properties !== undefined && release.additionalProperties !== false;
  return [
    ...(typesOf(release) === undefined && typesOf(today) !== undefined ? ["was any value"] : []),
    ...notIn(typesOf(release), typesOf(today)).map((type) => `was also ${type}`),
    ...(valuesOf(release) === undefined && valuesOf(today) !== undefined ? ["was any text"] : []),
    ...notIn(valuesOf(release), valuesOf(today)).map((value) => `has lost ${JSON.stringify(value)}`),
    ...notIn(today.required, release.required ?? []).map((name) => `needs the field \`${name}\``),
    ...["pattern", "format"]
      .filter((name) => isSet(name) && today[name] !== release[name])
      .map((name) => `has another ${name}`),
    ...Object.entries(LIMITS)
      .filter(isNarrower)
      .map(([name]) => `has a narrower ${name}`),
    ...(isOpen && today.additionalProperties === false ? ["refuses other fields"] : []),
  ];
}

/** Why a client of the release could not read a value that this code answers. */
const answerFaults = (release: Schema, today: Schema): string[] => [
  ...(typesOf(today) === undefined && typesOf(release) !== undefined ? ["may be any value"] : []),
  ...notIn(typesOf(today), typesOf(release)).map((type) => `may be ${type}`),
  ...("const" in release && release.const !== today.const ? [`was ${JSON.stringify(release.const)}`] : []),
  ...notIn(release.required, today.required ?? []).map((name) => `may lack the field \`${name}\``),
];
