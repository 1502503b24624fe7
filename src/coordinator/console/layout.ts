import type { ConsoleSession } from "../auth/console-sessions.ts";
import { fieldValue, html, type Markup } from "./markup.ts";
import type { Problem } from "../api/internal-api.ts";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

export interface Page {
  title: string;
  main: Markup;
  status?: number;
}

const sections = [
  ["/console", "Overview"],
  ["/console/leases", "Leases"],
  ["/console/cells", "Cells"],
  ["/console/shards", "Shards"],
  ["/console/transfers", "Transfers"],
  ["/console/verification", "Verification"],
  ["/console/audit", "Audit"],
  ["/console/keys", "Keys"],
  ["/console/webhooks", "Webhooks"],
  ["/console/settings", "Settings"],
  ["/console/health", "Health"],
] as const;

interface Shell {
  path: string;
  /** What the search box contains. */
  search: string;
  session: ConsoleSession | undefined;
  formToken: string;
}

/** The whole document. It has no scripts and loads only its style sheet. */
export const documentOf = ({ title, main }: Page, shell: Shell): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} - Leasehold</title>
        <link rel="stylesheet" href="${stylePath}" />
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        ${topOf(shell)}
        <main id="main" tabindex="-1">
          <h1>${title}</h1>
          ${main}
        </main>
      </body>
    </html>`.text;

function topOf({ path, search, session, formToken }: Shell): Markup {
  if (session === undefined)
    return html`<header class="top">
      <div class="bar"><a class="brand" href="/console">Leasehold</a></div>
    </header>`;
  const current = sections.find(
    ([at]) => path === at || (at !== "/console" && path.startsWith(`${at}/`)),
  )?.[0];
  return html`<header class="top">
    <div class="bar">
      <a class="brand" href="/console">Leasehold</a>
      <form class="search" action="/console/search" role="search">
        <input
          name="q"
          aria-label="Search for a name, lease, request, cell, key or source"
          placeholder="Name, lease, cell, key"
          value="${fieldValue(search)}"
          maxlength="1024"
        />
        <button>Search</button>
      </form>
      <span class="who"
        >${session.role} <span class="id">${session.email ?? session.keyId.slice(0, 8)}</span></span
      >
      ${signOut(session, formToken)}
    </div>
    <nav class="bar" aria-label="Pages">
      <ul>
        ${sections.map(
          ([at, name]) =>
            html`<li>
              <a href="${at}" ${at === current ? html`aria-current="page"` : undefined}>${name}</a>
            </li>`,
        )}
      </ul>
    </nav>
  </header>`;
}

/**
 * Cloudflare Access signs out at its own address, and sends the browser to that of the team. Browsers don't
 * let the answer to a form do that under this policy (`form-action`), so it is a link.
 */
const signOut = ({ email }: ConsoleSession, formToken: string): Markup =>
  email === undefined
    ? html`<form method="post" action="/console/sign-out">
        <input type="hidden" name="token" value="${formToken}" /><button>Sign out</button>
      </form>`
    : html`<a class="button" href="/cdn-cgi/access/logout">Sign out</a>`;

/** Why something could not be read or done, in the API's words. */
export const problemNote = ({ title, detail, code, reason, request_id: id }: Problem): Markup =>
  html`<div class="panel" role="alert">
    <strong class="bad">${title}</strong>
    <p>${detail}</p>
    <p class="soft">${code}${reason === undefined ? "" : ` / ${reason}`}, request <code>${id}</code></p>
  </div>`;

const style = `
:root {
  color-scheme: light dark;
  --ink: light-dark(#1b2430, #e4e8ee); --soft: light-dark(#566273, #a2adbb);
  --page: light-dark(#f4f6f8, #11151b); --panel: light-dark(#fff, #1a2029);
  --line: light-dark(#dde2e9, #2c3541); --edge: light-dark(#8a95a5, #66727f);
  --accent: light-dark(#1a56b0, #8ab8ff); --tint: light-dark(#eaf1fc, #1d2b40);
  --good: light-dark(#14683a, #7ed9a2); --bad: light-dark(#a8201a, #ff9b92);
  --warn: light-dark(#7a4b00, #f0c274); --bar: light-dark(#7ba4dd, #4a78b8);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--accent); text-underline-offset: .15em; text-decoration-thickness: from-font; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
main:focus { outline: none; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--panel); padding: .4rem .8rem; z-index: 1; }
header.top { background: var(--panel); border-bottom: 1px solid var(--line); }
.bar { max-width: 76rem; margin: 0 auto; padding: .6rem 1rem; display: flex; flex-wrap: wrap;
  gap: .5rem 1rem; align-items: center; }
.brand { font-weight: 700; font-size: 1.05rem; color: var(--ink); text-decoration: none;
  margin-right: auto; display: inline-flex; align-items: center; gap: .5rem; }
.brand::before { content: ""; width: .85rem; height: .85rem; border-radius: 3px;
  background: var(--accent); box-shadow: .25rem .25rem 0 -1px var(--bar); }
.bar form { display: flex; gap: .4rem; margin: 0; min-width: 0; }
.who { color: var(--soft); font-size: .85rem; }
nav.bar { padding-block: 0; }
nav ul { display: flex; flex-wrap: wrap; gap: 0 .2rem; margin: 0 -.6rem; padding: 0; list-style: none; }
nav a { display: block; padding: .4rem .6rem .5rem; text-decoration: none; color: var(--soft); }
nav a:hover { color: var(--ink); }
nav a[aria-current] { color: var(--ink); font-weight: 600; box-shadow: inset 0 -3px var(--accent); }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1rem 4rem; }
h1 { font-size: 1.55rem; line-height: 1.25; margin: .8rem 0 1rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p { margin: 0 0 1rem; }
code, .id { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: .9rem 1.1rem; margin: 0 0 1rem; }
.panel > :last-child { margin-bottom: 0; }
.panel.empty { color: var(--soft); border-style: dashed; text-align: center; padding: 1.4rem 1rem; }
.state { font-weight: 600; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.banner { border-left: 5px solid currentcolor; font-size: 1.15rem; font-weight: 600; }
.verdict { border-left: 5px solid var(--bad); } .verdict h2 { margin: 0 0 .6rem; }
.reasons { margin: 0; padding: 0; list-style: none; } .reasons.panel { padding: .9rem 1.1rem; }
.reasons li { padding: .6rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.reasons li:first-child { border-top: 0; padding-top: 0; }
.reasons li:last-child { padding-bottom: 0; }
.reasons code { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .7rem;
  margin: 0 0 1rem; }
.tiles div { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: .6rem .9rem; }
.tiles dt { color: var(--soft); font-size: .8rem; }
.tiles dd { margin: 0; font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.facts { display: grid; gap: .3rem; }
.facts div { display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: 0 1.2rem; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 0 0 1rem; background: var(--panel); border: 1px solid var(--line);
  border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .7rem 1.1rem; font-weight: 600; }
th, td { text-align: left; padding: .45rem 1.1rem; border-top: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
thead th { font-weight: 500; font-size: .82rem; color: var(--soft); white-space: nowrap; }
tbody th { font-weight: 500; } th .soft { font-weight: 400; }
tbody tr:hover { background: var(--tint); }
.number { text-align: right; white-space: nowrap; }
time, td code, .short { white-space: nowrap; }
form.stack { display: grid; gap: .8rem; max-width: 34rem; }
label { display: grid; gap: .25rem; font-weight: 600; font-size: .9rem; }
label small, legend small { font-weight: 400; color: var(--soft); }
fieldset { display: grid; gap: .5rem; margin: 0; border: 1px solid var(--line); border-radius: 8px;
  padding: .6rem .9rem .8rem; min-width: 0; }
legend { font-weight: 600; font-size: .9rem; padding: 0 .3rem; }
fieldset label.check { min-height: 0; overflow-wrap: anywhere; }
label.check { display: flex; gap: .5rem; align-items: center; font-weight: 400; min-height: 2.3rem; }
input, select, button { font: inherit; font-weight: 400; color: inherit; }
input, select { background: var(--page); border: 1px solid var(--edge); border-radius: 6px;
  padding: .4rem .6rem; min-width: 0; max-width: 100%; min-height: 2.3rem; }
input[type="checkbox"] { min-height: 0; width: 1.05rem; height: 1.05rem; accent-color: var(--accent); }
button, .button { background: var(--panel); border: 1px solid var(--edge); border-radius: 6px;
  padding: .35rem .9rem; min-height: 2.3rem; cursor: pointer; font-weight: 600; justify-self: start;
  text-decoration: none; display: inline-block; }
button:hover, .button:hover { border-color: var(--accent); }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--panel); }
button.danger { background: var(--bad); border-color: var(--bad); color: var(--panel); }
.filters { display: flex; flex-wrap: wrap; gap: .7rem 1rem; align-items: end; }
.actions { display: flex; flex-wrap: wrap; gap: .6rem; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
  gap: 0 1rem; align-items: start; }
figure { margin: 0; } figcaption { font-weight: 600; font-size: .9rem; margin-bottom: .6rem; }
.bars { display: grid; gap: .35rem; margin: 0; font-size: .9rem; font-variant-numeric: tabular-nums; }
.bars div { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: 1rem; align-items: center; }
.bars dt { color: var(--soft); overflow-wrap: anywhere; }
.bars dd { margin: 0; display: grid; grid-template-columns: minmax(0, 1fr) 5.5rem; gap: .8rem;
  align-items: center; }
.bars dd span { text-align: right; }
svg { display: block; width: 100%; height: .8rem; border-radius: 3px; background: var(--page); }
svg rect { fill: var(--bar); }
.secret { padding: .9rem; border: 2px dashed var(--warn); border-radius: 8px; overflow-wrap: anywhere; }
.narrow { max-width: 30rem; } .narrow input { width: 100%; }
@media (max-width: 40rem) {
  h1 { font-size: 1.3rem; }
  .facts div { grid-template-columns: minmax(0, 1fr); } .facts { gap: .5rem; }
  .facts dt { font-size: .82rem; }
  .bar form.search { order: 1; flex: 1 1 100%; } .search input { flex: 1; }
  header .bar { gap: .5rem .6rem; } header button { padding-inline: .6rem; } .who .id { display: none; }
  nav ul { gap: 0; margin: 0 -.4rem; } nav a { padding: .25rem .4rem .4rem; font-size: .9rem; }
  .tiles { grid-template-columns: repeat(2, 1fr); }
  .filters label:not(.check) { flex: 1 1 40%; } .filters input, .filters select { width: 100%; }
  .filters input[type="checkbox"] { width: 1.05rem; }
  .bars div { grid-template-columns: 5.5rem minmax(0, 1fr); gap: .6rem; }
  .bars dd { grid-template-columns: minmax(0, 1fr) auto; }
  .scroll { overflow-x: visible; background: none; border: 0; border-radius: 0; }
  table, caption, tbody, tr, td, tbody th { display: block; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  caption { padding: .2rem .1rem .5rem; }
  tbody tr { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
    margin-bottom: .6rem; padding: .5rem .9rem; }
  tbody tr:hover { background: var(--panel); }
  td, tbody th { border: 0; padding: .12rem 0; }
  tbody th { font-weight: 600; font-size: .95rem; padding-bottom: .3rem; }
  td { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: .8rem; }
  td::before { content: attr(data-title); color: var(--soft); }
  tbody th::before { content: attr(data-title) " "; color: var(--soft); font-weight: 400; }
  td.none { display: none; } td code { white-space: normal; }
  .number { text-align: left; }
}
`;

export const styleBytes = new TextEncoder().encode(style);

const version = bytesToHex(sha256(styleBytes)).slice(0, 16);

/** The address changes with the style sheet, so browsers may keep it forever. */
export const stylePath = `/console/style-${version}.css`;
