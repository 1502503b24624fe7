import { html } from "hono/html";
import type { Timing } from "../launcher/timing.ts";
import { basePath, renderPage, type Html, type PageOwner } from "../web/layout.ts";

/**
 * The page for a cell that does not answer. With JavaScript it continues on its own, and it also has a link.
 */
export const unavailablePage = (owner: PageOwner, cell: string, timing: Timing): Html =>
  renderPage({
    title: `Cell ${cell} is down`,
    owner,
    path: "",
    main: html`<div
      class="message away"
      data-owner="${cell}"
      data-wait="/-/status/${cell}"
      data-then="${basePath(cell)}"
    >
      <p class="dot big" aria-hidden="true"></p>
      <h1>Cell ${cell} is down for a moment</h1>
      <p class="lead" role="status">
        Its process has ended. Another one starts in about ${Math.ceil(timing.restartMs / 1_000)} seconds.
      </p>
      <p>
        If it died during a sign-up, the lease still holds the names, so nobody else can take them. When the
        cell is back, reconciliation checks its database. If the rows were saved, it commits the lease. If
        they were not, it rolls the lease back after ${timing.staleMs / 1_000} seconds.
      </p>
      <p class="actions">
        <a class="button" href="${basePath(cell)}">Back to Cell ${cell}</a>
        <a class="button quiet" href="/">Start page</a>
      </p>
    </div>`,
  });
