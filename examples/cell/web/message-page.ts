import { HTTPException } from "hono/http-exception";
import { html } from "hono/html";
import { renderPage, type Html, type PageOwner } from "./layout.ts";

/** Renders a page with one message. */
export const messagePage = (owner: PageOwner, path: string, title: string, text: string): Html =>
  renderPage({
    title,
    owner,
    path,
    main: html`<div class="message">
      <h1>${title}</h1>
      <p class="lead">${text}</p>
      <p><a class="button quiet" href="/">Start page</a></p>
    </div>`,
  });

const refusals: Readonly<Record<number, string>> = {
  403: "The form was sent from another site.",
  413: "The form is too large.",
  421: "This example is only available on its own machine. Use 127.0.0.1 or localhost.",
};

/** Returns the page for a request that a middleware refused, or undefined for other errors. */
export function refusalPage(
  owner: PageOwner,
  path: string,
  error: Error,
): { page: Html; status: HTTPException["status"] } | undefined {
  if (!(error instanceof HTTPException)) return undefined;
  return {
    page: messagePage(
      owner,
      path,
      "The request was refused",
      refusals[error.status] ?? "The request is malformed.",
    ),
    status: error.status,
  };
}
