import { sha256 } from "@noble/hashes/sha2.js";
import { encodedOnce } from "../encoded-once.ts";
import { entriesOf, type Document, type Entry } from "./document.ts";
import { choices, fieldList, fieldsOf, methodBadge, operationSection } from "./operation.ts";
import { html, Markup, chaptersOf, inline, paragraphs } from "./markup.ts";

/** The style sheet of the reference page. It supports light and dark, all widths, and loads no fonts. */
const style = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#fdfdfb, #14161a);
  --panel: light-dark(#f4f4ef, #1a1d23);
  --ink: light-dark(#1d2126, #e4e6ea);
  --soft: light-dark(#5d6570, #98a1ae);
  --line: light-dark(#e3e3dc, #2a2f38);
  --accent: light-dark(#0b6b5d, #5cc9b4);
  --code: light-dark(#f1f1eb, #20242c);
  --get: light-dark(#0b6b5d, #5cc9b4);
  --post: light-dark(#1f5fbf, #7fb0ff);
  --put: light-dark(#9a5b00, #f0b45c);
  --patch: light-dark(#7a3fb5, #c79bf2);
  --bad: light-dark(#b3372b, #ff9085);
  --mono: ui-monospace, "SF Mono", "Cascadia Code", "JetBrains Mono", Menlo, Consolas, monospace;
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; display: grid; grid-template-columns: 17.5rem minmax(0, 1fr);
  background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
a { color: inherit; text-decoration-color: var(--line); text-underline-offset: .2em; }
a:hover { color: var(--accent); text-decoration-color: currentColor; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
code, pre { font-family: var(--mono); font-size: .875em; }
p code, dd code, td code { background: var(--code); border-radius: 4px; padding: .1em .35em; }
.skip { position: absolute; left: -99em; }
.skip:focus { left: 1rem; top: 1rem; background: var(--paper); padding: .5rem 1rem; z-index: 2; }

nav {
  position: sticky; top: 0; align-self: start; height: 100vh; overflow-y: auto; scrollbar-width: thin;
  padding: 1.75rem 1.25rem 3rem; background: var(--panel); border-right: 1px solid var(--line);
  font-size: .875rem;
}
nav .brand {
  display: flex; align-items: baseline; gap: .5rem; font-size: 1.15rem; font-weight: 650;
  text-decoration: none; letter-spacing: -.01em;
}
nav small { font-size: .75rem; font-weight: 400; color: var(--soft); }
nav h2 { margin: 1.5rem 0 .35rem; font-size: .75rem; font-weight: 600; color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a {
  display: flex; align-items: baseline; gap: .5rem; padding: .22rem .5rem; margin: 0 -.5rem;
  border-radius: 6px; text-decoration: none; line-height: 1.35;
}
nav li a:hover { background: var(--code); }
nav .method { flex: 0 0 2.9em; text-align: left; padding: 0; border: 0; font-size: .65rem; }

main { padding: 3.5rem clamp(1.25rem, 4vw, 4rem) 6rem; max-width: 84rem; min-width: 0; }
h1 { margin: 0; font-size: clamp(1.9rem, 4vw, 2.6rem); line-height: 1.15; letter-spacing: -.025em; }
h1 span { color: var(--soft); font-weight: 400; }
.lead { margin: .4rem 0 1.4rem; font-size: 1.2rem; color: var(--soft); }
header > p { max-width: 44rem; }
.button {
  display: inline-block; padding: .4rem .9rem; border: 1px solid var(--line); border-radius: 8px;
  font-size: .875rem; text-decoration: none;
}
.button.contents { display: none; }
.button:hover { border-color: currentColor; }
.guide { margin-top: 2.5rem; columns: 26rem 2; column-gap: 3.5rem; }
.guide section { break-inside: avoid; padding-bottom: .75rem; }
.guide h2 { margin: 0 0 .3rem; font-size: 1.05rem; }
.guide p { margin: 0 0 .8rem; }
h2.group {
  margin: 5rem 0 0; padding-bottom: .9rem; font-size: 1.7rem; letter-spacing: -.02em;
  border-bottom: 1px solid var(--line);
}
h2.group small {
  display: block; margin-top: .15rem; font-size: 1rem; font-weight: 400; letter-spacing: 0;
  color: var(--soft);
}

.route {
  display: grid; grid-template-columns: minmax(0, 1.25fr) minmax(0, 1fr); gap: 1.5rem 3rem;
  padding: 2.75rem 0; border-bottom: 1px solid var(--line);
}
.route h3 { margin: 0; font-size: 1.25rem; letter-spacing: -.01em; }
.route h3 a { text-decoration: none; }
.route h4 { margin: 1.6rem 0 .2rem; font-size: .875rem; }
.address { margin: .5rem 0 .9rem; display: flex; align-items: baseline; gap: .6rem; }
.address code { padding: 0; background: none; font-size: .9rem; }
.method {
  font: 650 .7rem/1 var(--mono); padding: .28em .5em; border: 1px solid currentColor; border-radius: 5px;
}
.get { color: var(--get); }
.post { color: var(--post); }
.put { color: var(--put); }
.patch { color: var(--patch); }
.roles { margin: 0; font-size: .875rem; color: var(--soft); }
.roles b { font-weight: 600; color: var(--ink); }
.looks { min-width: 0; }
.looks figure {
  margin: 0 0 1rem; border: 1px solid var(--line); border-radius: 10px; overflow: hidden;
  background: var(--panel);
}
figcaption {
  padding: .45rem 1rem; font-size: .75rem; color: var(--soft); border-bottom: 1px solid var(--line);
}
pre { margin: 0; padding: .9rem 1rem; overflow-x: auto; font-size: .8rem; line-height: 1.55; tab-size: 2; }
pre code { font-size: inherit; }
@media (min-width: 75rem) {
  .looks {
    position: sticky; top: 1.5rem; align-self: start; max-height: calc(100vh - 3rem); overflow-y: auto;
    scrollbar-width: thin;
  }
}

.fields { margin: 0; }
.fields > div { padding: .6rem 0; border-top: 1px solid var(--line); }
.fields > div:first-child { border-top: 0; }
dt { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem .6rem; }
dt code { font-weight: 600; overflow-wrap: anywhere; }
dd { margin: 0; color: var(--soft); font-size: .9rem; }
dd p { margin: .1rem 0 0; }
.type { font-size: .8rem; color: var(--soft); }
.mark { font-size: .75rem; color: var(--bad); }
.mark.optional { color: var(--soft); }
.mark.retry { color: var(--accent); font-weight: 400; }
.choices { line-height: 1.9; }
.answer { margin: .3rem 0; }
.status { font: 600 .8rem/1 var(--mono); color: var(--soft); }
.errors { margin-top: 1.4rem; }
summary { cursor: pointer; font-size: .875rem; font-weight: 600; }
table { margin-top: .5rem; border-collapse: collapse; width: 100%; font-size: .85rem; }
td {
  padding: .45rem .9rem .45rem 0; vertical-align: top; border-top: 1px solid var(--line);
  color: var(--soft);
}
td code { overflow-wrap: anywhere; color: var(--ink); }
.codes, .schemas {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); gap: 0 3rem;
}
.codes section, .schemas section { padding: 1.4rem 0; border-bottom: 1px solid var(--line); min-width: 0; }
.codes h3, .schemas h3 { margin: 0; font-size: 1rem; }
.codes p, .schemas p { margin: .3rem 0 0; }
.codes section:target, .schemas section:target {
  background: linear-gradient(90deg, var(--code), transparent); box-shadow: -1rem 0 0 var(--code);
}

@media (max-width: 74.99rem) { .route { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 52rem) {
  body { display: flex; flex-direction: column; }
  nav {
    order: 1; position: static; height: auto; align-self: stretch; border-right: 0;
    border-top: 1px solid var(--line); columns: 15rem;
  }
  nav .brand { column-span: all; }
  nav h2, nav ul { break-inside: avoid; } nav h2 { break-after: avoid; }
  .button.contents { display: inline-block; }
  main { padding-top: 2rem; }
}
@media print { nav, .skip { display: none; } body { display: block; } details > * { display: block; } }
`;

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
