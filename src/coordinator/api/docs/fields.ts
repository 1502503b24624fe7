import { nameOfRef, type Schema } from "./document.ts";
import { html, type Markup } from "./markup.ts";
import { inline } from "./prose.ts";

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
