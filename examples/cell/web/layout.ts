import { html } from "hono/html";
import { assetPath } from "./assets.ts";

export type Html = ReturnType<typeof html>;

/** The router or the cell that the page belongs to. */
export interface PageOwner {
  /** "router", or a cell's id. */
  id: string;
  cells: readonly string[];
}

export interface Page {
  title: string;
  owner: PageOwner;
  /** The address of the page, for the navigation. */
  path: string;
  main: Html;
  /** Shown beside the main part if the window is wide enough. */
  aside?: Html;
}

export const basePath = (cell: string): string => `/-/cells/${cell}`;

const nothing = "";

export function renderPage({ title, owner, path, main, aside }: Page): Html {
  const isCell = owner.id !== "router";
  return html`<!doctype html>
    <html lang="en" data-owner="${owner.id}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · ${isCell ? `Cell ${owner.id}` : "Router"} · Leasehold</title>
        <link rel="icon" href="${assetPath("icon.svg")}" type="image/svg+xml" />
        <link rel="stylesheet" href="${assetPath("style.css")}" />
        <script type="module" src="${assetPath("enhance.js")}"></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header class="top">
          <div class="bar">
            <a class="brand" href="/"
              ><span class="mark" aria-hidden="true"></span>Leasehold <span class="soft">example</span></a
            >
            <nav aria-label="Router and cells">
              <ul>
                <li>${link("/", "Router", !isCell && path === "/")}</li>
                ${owner.cells.map((cell) => cellItem(cell, cell === owner.id))}
              </ul>
            </nav>
          </div>
          ${isCell ? cellBar(owner.id, path) : nothing}
        </header>
        <div class="page${aside === undefined ? "" : " with-aside"}">
          <main id="main" tabindex="-1">${main}</main>
          ${aside === undefined ? nothing : html`<aside aria-label="Recent activity">${aside}</aside>`}
        </div>
        <footer class="bottom">
          <p>This example runs on your machine only. It has no passwords and no real accounts.</p>
        </footer>
      </body>
    </html>`;
}

/** Renders a bar that names the cell, so that color is not the only difference. */
function cellBar(cell: string, path: string): Html {
  const base = basePath(cell);
  return html`<div class="cellbar">
    <div class="bar">
      <p><span class="dot" aria-hidden="true"></span>You are in <strong>Cell ${cell}</strong></p>
      <nav aria-label="Cell ${cell}">
        <ul>
          <li>${link(base, "People", path === base)}</li>
          <li>${link(`${base}/operations`, "Operations", path === `${base}/operations`)}</li>
        </ul>
      </nav>
    </div>
  </div>`;
}

const cellItem = (cell: string, isCurrent: boolean): Html =>
  html`<li data-owner="${cell}">${link(basePath(cell), `Cell ${cell}`, isCurrent)}</li>`;

const link = (to: string, text: string, isCurrent: boolean): Html =>
  isCurrent ? html`<a href="${to}" aria-current="page">${text}</a>` : html`<a href="${to}">${text}</a>`;
