import { html } from "hono/html";
import type { Timing } from "../launcher/timing.ts";
import { basePath, renderPage, type Html, type PageOwner } from "../web/layout.ts";

/** While a cell is not there. With a script it goes on by itself; without, there is a link. */
export const unavailablePage = (owner: PageOwner, cell: string, timing: Timing): Html =>
  renderPage({
    title: `Cell ${cell} is away`,
    owner,
    path: "",
    main: html`<div
      class="message away"
      data-owner="${cell}"
      data-wait="/-/status/${cell}"
      data-then="${basePath(cell)}"
    >
      <p class="dot big" aria-hidden="true"></p>
      <h1>Cell ${cell} is away for a moment</h1>
      <p class="lead" role="status">
        Its process is gone. Another one starts in about ${Math.ceil(timing.restartMs / 1_000)} seconds.
      </p>
      <p>
        If it died in the middle of a sign-up, the coordinator still holds the names for it: nobody else can
        take them. Once it is back, reconciliation looks into the cell's database. Were the rows saved, the
        lease is committed. Were they not, it is rolled back after ${timing.staleMs / 1_000} seconds.
      </p>
      <p class="actions">
        <a class="button" href="${basePath(cell)}">Back to Cell ${cell}</a>
        <a class="button quiet" href="/">To the start</a>
      </p>
    </div>`,
  });
