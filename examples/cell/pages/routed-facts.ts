import type { Context } from "hono";
import { html } from "hono/html";
import type { Html } from "../web/layout.ts";

function foundBy(context: Context): string {
  const ageMs = context.req.header("leasehold-age-ms");
  return ageMs === undefined ? "a request to this cell directly" : `the router, by an answer ${ageMs} ms old`;
}

/** How a page was reached: its address, the cell that serves it, and what the router did. */
export const routedFacts = (path: string, cell: string, context: Context, more: Html | "" = ""): Html =>
  html`<dl class="facts">
    <div>
      <dt>Address</dt>
      <dd>${path}</dd>
    </div>
    ${more}
    <div>
      <dt>Served by</dt>
      <dd>Cell ${cell}</dd>
    </div>
    <div>
      <dt>Found by</dt>
      <dd>${foundBy(context)}</dd>
    </div>
  </dl>`;
