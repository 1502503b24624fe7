import { HTTPException } from "hono/http-exception";
import { html } from "hono/html";
import { renderPage, type Html, type PageOwner } from "./layout.ts";

/** A page that says one thing. */
export const messagePage = (owner: PageOwner, path: string, title: string, text: string): Html =>
  renderPage({
    title,
    owner,
    path,
    main: html`<div class="message">
      <h1>${title}</h1>
      <p class="lead">${text}</p>
      <p><a class="button quiet" href="/">To the start</a></p>
    </div>`,
  });

const refusals: Readonly<Record<number, string>> = {
  403: "The form came from somewhere else.",
  413: "That is more than a form here may hold.",
  421: "This example is served to this machine only.",
};

/** For requests that are refused before anybody looks at what they want; undefined for other errors. */
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
      "That is not possible",
      refusals[error.status] ?? "The request is malformed.",
    ),
    status: error.status,
  };
}
