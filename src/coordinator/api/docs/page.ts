import { sha256 } from "@noble/hashes/sha2.js";
import { encodedOnce } from "../encoded-once.ts";
import { entriesOf, type Document, type Entry } from "./document.ts";
import { choices, fieldList, fieldsOf } from "./fields.ts";
import { html, Markup } from "./markup.ts";
import { methodBadge, operationSection } from "./operation.ts";
import { chaptersOf, inline, paragraphs } from "./prose.ts";
import { style } from "./style.ts";

/** Made as one string, because the content security policy contains the hash of these exact bytes. */
const styleElement = new Markup(`<style>${style}</style>`);

/** The API reference page. It has no scripts and loads nothing. */
export const encodedPage = encodedOnce<Document>((document) => render(document).text);

const styleHash = btoa(String.fromCharCode(...sha256(new TextEncoder().encode(style))));

/** The policy allows only this page's own style sheet. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-security-policy":
    `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; ` +
    "form-action 'none'; frame-ancestors 'none'",
};

function render(document: Document): Markup {
  const { info, tags } = document;
  const [introduction, ...chapters] = chaptersOf(info.description);
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${info.title} API reference</title>
        ${styleElement}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the reference</a>
        <nav id="contents" aria-label="Reference">
          <a class="brand" href="#main">${info.title}<small>${info.version}</small></a>
          <h2>Guide</h2>
          <ul>
            ${chapters.map(({ title, anchor }) => html`<li><a href="#${anchor}">${title}</a></li>`)}
          </ul>
          ${tags.map(
            (tag) =>
              html`<h2>${capital(tag.name)}</h2>
                <ul>
                  ${entriesOf(document, tag).map(navItem)}
                </ul>`,
          )}
          <h2>Appendix</h2>
          <ul>
            <li><a href="#errors">Error codes</a></li>
            <li><a href="#schemas">Schemas</a></li>
          </ul>
        </nav>
        <main id="main">
          <header>
            <h1>${info.title} <span>API reference</span></h1>
            <p class="lead">${inline(info.summary)}</p>
            ${paragraphs(introduction?.paragraphs ?? [])}
            <p>
              <a class="button contents" href="#contents">Contents</a>
              <a class="button" href="/openapi.json">OpenAPI 3.1</a>
            </p>
          </header>
          <div class="guide">
            ${chapters.map(
              ({ title, anchor, paragraphs: texts }) =>
                html`<section id="${anchor}">
                  <h2>${title}</h2>
                  ${paragraphs(texts)}
                </section>`,
            )}
          </div>
          ${tags.map(
            (tag) =>
              html`<h2 class="group" id="group-${tag.name}">
                  ${capital(tag.name)}<small>${tag.description}</small>
                </h2>
                ${entriesOf(document, tag).map(operationSection)}`,
          )}
          ${errorCodes(document)} ${schemas(document)}
        </main>
      </body>
    </html> `;
}

const navItem = ({ method, operation }: Entry): Markup =>
  html`<li><a href="#${operation.operationId}">${methodBadge(method)}${operation.summary}</a></li>`;

function errorCodes(document: Document): Markup {
  return html`<h2 class="group" id="errors">
      Error codes<small>The complete list. The <code>type</code> of a problem links to its code.</small>
    </h2>
    <div class="codes">
      ${document["x-error-codes"].map(
        ({ code, status, title, retryable, description }) =>
          html`<section id="error-${code.toLowerCase()}">
            <h3>
              <span class="status">${status}</span>
              <code>${code}</code> ${retryable ? html`<span class="mark retry">try again</span>` : undefined}
            </h3>
            <p><strong>${title}.</strong> ${inline(description)}</p>
          </section>`,
      )}
    </div>`;
}

function schemas(document: Document): Markup {
  const named = Object.entries(document.components.schemas);
  return html`<h2 class="group" id="schemas">
      Schemas<small>The named schemas of requests and answers.</small>
    </h2>
    <div class="schemas">
      ${named.map(
        ([name, schema]) =>
          html`<section id="schema-${name}">
            <h3><code>${name}</code></h3>
            ${paragraphs(schema.description === undefined ? [] : [schema.description])} ${choices(schema)}
            ${fieldList(fieldsOf(schema), "optional")}
          </section>`,
      )}
    </div>`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
