import {
  resolved,
  nameOfRef,
  type Content,
  type Entry,
  type Operation,
  type Parameter,
  type Schema,
  type Schemas,
} from "./document.ts";
import { html, inline, type Markup } from "./markup.ts";

/** The section of one route: the description on the left, an example on the right. */
export function operationSection(entry: Entry): Markup {
  const { method, path, operation, schemas } = entry;
  return html`<section class="route" id="${operation.operationId}">
    <div class="words">
      <h3><a href="#${operation.operationId}">${operation.summary}</a></h3>
      <p class="address">${methodBadge(method)}<code>${pathOf(path)}</code></p>
      <p>${inline(operation.description)}</p>
      <p class="roles">${rolesOf(operation)}</p>
      ${parameterFields("Path", "path", operation)} ${parameterFields("Query", "query", operation)}
      ${parameterFields("Headers", "header", operation)} ${bodyFields(operation, schemas)}
      ${answers(operation, schemas)} ${errors(operation)}
    </div>
    <div class="looks">${samples(entry)}</div>
  </section>`;
}

export const methodBadge = (method: string): Markup =>
  html`<span class="method ${method.toLowerCase()}">${method}</span>`;

/** Allows a line break after each slash and nowhere else. */
const pathOf = (path: string): Markup =>
  html`${path.split("/").map((part, index) => (index === 0 ? part : html`/<wbr />${part}`))}`;

function rolesOf({ "x-roles": roles }: Operation): Markup {
  return roles.length === 0
    ? html`For <b>anyone</b>, without a key.`
    : html`For ${roles.map((role, index) => html`${index === 0 ? "" : " · "}<b>${role}</b>`)}`;
}

function parameterFields(
  title: string,
  location: Parameter["in"],
  { parameters = [] }: Operation,
): Markup | undefined {
  const fields = parameters.filter((parameter) => parameter.in === location);
  if (fields.length === 0) return undefined;
  return html`<h4>${title}</h4>
    ${fieldList(fields, "required")}`;
}

function bodyFields({ requestBody }: Operation, schemas: Schemas): Markup | undefined {
  if (requestBody === undefined) return undefined;
  const { schema } = requestBody.content["application/json"];
  return html`<h4>Body${requestBody.required ? "" : " (optional)"}</h4>
    ${fieldList(fieldsOf(resolved(schemas, schema)), "required")}`;
}

function answers({ responses }: Operation, schemas: Schemas): Markup {
  const good = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  return html`<h4>Answers</h4>
    ${good.map(([status, { description, content }]) => {
      const body = Object.values(content)[0]?.schema ?? {};
      const schema = body.contentSchema?.items ?? body;
      return html`<p class="answer"><span class="status">${status}</span> ${inline(description)}</p>
        ${status === good[0]?.[0] ? answerFields(schema, schemas) : undefined}`;
    })}`;
}

function answerFields(schema: Schema, schemas: Schemas): Markup | undefined {
  const fields = fieldsOf(resolved(schemas, schema));
  return fields.length === 0 ? undefined : fieldList(fields, "optional");
}

function errors({ "x-errors": listed }: Operation): Markup | undefined {
  const own = listed.filter(({ code, reason }) => reason !== undefined || !EVERYWHERE.has(code));
  if (own.length === 0) return undefined;
  return html`<details class="errors">
    <summary>Errors</summary>
    <table>
      <tbody>
        ${own
          .toSorted((a, b) => a.status - b.status)
          .map(
            ({ code, reason, when, status }) =>
              html`<tr>
                <td><span class="status">${status}</span></td>
                <td>
                  <a href="#error-${code.toLowerCase()}"><code>${reason ?? code}</code></a>
                </td>
                <td>${inline(when)}</td>
              </tr>`,
          )}
      </tbody>
    </table>
  </details>`;
}

/** These codes apply to nearly every route, so only the table of codes explains them. */
const EVERYWHERE: ReadonlySet<string> = new Set(["INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED"]);

const exampleText = ({ example, schema }: Content, isLines: boolean, schemas: Schemas): string =>
  isLines ? String(example) : JSON.stringify(example ?? sampleOf(schemas, schema), null, 2);

/** Shows an example call and its answer: the one with the highest 2xx status. */
function samples(entry: Entry): Markup {
  const good = Object.entries(entry.operation.responses).findLast(([status]) => status.startsWith("2"));
  const { "application/json": json, "application/x-ndjson": lines } = good?.[1].content ?? {};
  const content = json ?? lines;
  const answer =
    content &&
    html`<figure>
      <figcaption>${good?.[0]}</figcaption>
      <pre><code>${exampleText(content, lines !== undefined, entry.schemas)}</code></pre>
    </figure>`;
  return html`<figure>
      <figcaption>Call</figcaption>
      <pre><code>${curlOf(entry)}</code></pre>
    </figure>
    ${answer}`;
}

const UUID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";

/** A sample value for a schema. It has only the required fields. */
function sampleOf(schemas: Schemas, schema: Schema, name = ""): unknown {
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
function curlOf({ method, path, operation }: Entry): string {
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

export interface Field {
  name: string;
  schema: Schema;
  required: boolean;
  description?: string | undefined;
}

/**
 * The fields of an object. Fields of nested objects follow with their path. Those of several alternative
 * objects are listed one after another.
 */
export function fieldsOf(schema: Schema, prefix = ""): Field[] {
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap((each) => fieldsOf(each, prefix));
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const field = {
      name: prefix + name,
      schema: inner,
      required: schema.required?.includes(name) ?? false,
      description: inner.description,
    };
    const nested = inner.type === "array" ? inner.items : inner;
    const deeper =
      nested?.properties === undefined
        ? []
        : fieldsOf(nested, `${prefix}${name}${inner.type === "array" ? "[]" : ""}.`);
    return [field, ...deeper];
  });
}

/** Lists fields. In requests the required fields are marked, and in answers the optional ones. */
export function fieldList(fields: readonly Field[], marks: "required" | "optional"): Markup {
  return html`<dl class="fields">
    ${fields.map(({ name, schema, required, description }) => {
      const mark =
        required === (marks === "required") ? html`<span class="mark ${marks}">${marks}</span>` : undefined;
      return html`<div>
        <dt><code>${name}</code><span class="type">${typeOf(schema)}</span>${mark}</dt>
        <dd>
          ${description === undefined ? undefined : html`<p>${inline(description)}</p>`}${choices(schema)}
        </dd>
      </div>`;
    })}
  </dl>`;
}

function typeOf(schema: Schema): Markup {
  if (schema.$ref !== undefined)
    return html`<a href="#schema-${nameOfRef(schema.$ref)}">${nameOfRef(schema.$ref)}</a>`;
  if (schema.anyOf !== undefined)
    return html`${schema.anyOf.map((each, index) => html`${index === 0 ? "" : " or "}${typeOf(each)}`)}`;
  if (schema.type === "array")
    return schema.items?.properties === undefined
      ? html`list of ${typeOf(schema.items ?? {})}`
      : html`list of objects`;
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.format === "uuid") return html`uuid`;
  if (schema.format === "date-time") return html`time`;
  return html`${[schema.type ?? "anything"].flat().join(" or ")}`;
}

/** Lists the values of an enumeration. */
export function choices(schema: Schema): Markup | undefined {
  const values = schema.enum ?? schema.items?.enum;
  return values && html`<p class="choices">${values.map((value) => html`<code>${value}</code> `)}</p>`;
}
