import type { ConsoleSession } from "../auth/console-sessions.ts";
import { fieldValue, html, type Markup } from "./markup.ts";
import { stylePath } from "./style.ts";
import type { Problem } from "../api/internal-api.ts";

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
