import {
  resolved,
  type Content,
  type Entry,
  type Operation,
  type Parameter,
  type Schema,
  type Schemas,
} from "./document.ts";
import { fieldList, fieldsOf } from "./fields.ts";
import { html, type Markup } from "./markup.ts";
import { inline } from "./prose.ts";
import { curlOf, sampleOf } from "./sample.ts";

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
