/** The page where people change their own account. */
import type { Context, Hono } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import { html } from "hono/html";
import type { Account } from "../application/accounts.ts";
import { MAX_HANDLE, handleProblem } from "../application/names.ts";
import { problemsOf } from "../application/problems.ts";
import { input, noProblems, problemSummary, type Field, type Problems } from "../web/forms.ts";
import type { Html } from "../web/layout.ts";
import { readForm } from "../web/read-form.ts";
import { profilePath } from "./addresses.ts";
import type { CellPages } from "./app.ts";
import { findPerson, personCookie, signedIn } from "./person.ts";
import { storePages, storeSection, type StoreForm } from "./store.ts";

/** Messages about the action that redirected to this page. */
const messages: Readonly<Record<string, string>> = {
  "signed-up": "Welcome. One lease claimed your handle and your email, both or none.",
  "renamed-free": "The account is renamed. The old name is free, and links to it no longer work.",
  "renamed-kept": "The account has a new spelling. Nobody else can take the name in any spelling.",
  "renamed-same": "The handle is as it was.",
  "renamed-unknown": "The account is renamed.",
  "store-opened": "Your store is open. No other store in any cell can have its name.",
  "store-closed": "Your store is closed, and its name is free in all cells.",
};

export function accountPages(app: Hono, pages: CellPages): void {
  const { base, accounts, config } = pages;
  const cookie = personCookie(config.cell);

  app.post(`${base}/sign-in`, async (context) => {
    const person = await findPerson((await readForm(context, ["person"])).person, accounts);
    if (person === undefined) return context.redirect(base, 303);
    setCookie(context, cookie, String(person.id), { path: base, httpOnly: true, sameSite: "Strict" });
    return context.redirect(`${base}/account`, 303);
  });

  const endSession = (context: Context, done: string): Response => {
    deleteCookie(context, cookie, { path: base });
    return context.redirect(`${base}?done=${done}`, 303);
  };

  app.post(`${base}/sign-out`, (context) => endSession(context, "signed-out"));

  app.get(`${base}/account`, async (context) => {
    const person = await signedIn(context, config.cell, accounts);
    if (person === undefined) return context.redirect(base, 303);
    const main = accountPage(base, person, {}, context.req.query("done"));
    return pages.show(context, person.handle, main);
  });

  app.post(`${base}/account/rename`, async (context) => {
    const person = await signedIn(context, config.cell, accounts);
    if (person === undefined) return context.redirect(base, 303);
    const { handle } = await readForm(context, ["handle"]);
    const showProblems = (problems: Problems): Promise<Response> =>
      pages.show(
        context,
        "Nothing was renamed",
        accountPage(base, person, { rename: { handle, problems } }),
        422,
      );
    const problem = handleProblem(handle);
    if (problem !== undefined) return showProblems(new Map([["handle", problem]]));
    try {
      const oldName = await accounts.rename(person, handle);
      return context.redirect(`${base}/account?done=renamed-${oldName}`, 303);
    } catch (error) {
      return showProblems(problemsOf(error));
    }
  });

  app.post(`${base}/account/delete`, async (context) => {
    const person = await signedIn(context, config.cell, accounts);
    if (person !== undefined) await accounts.delete(person.id);
    return endSession(context, "deleted");
  });

  storePages(app, pages, (person, store) => accountPage(base, person, { store }));
}

/** What the forms of the page contain. */
interface Forms {
  rename?: { handle: string; problems: Problems };
  store?: StoreForm;
}

function accountPage(base: string, person: Account, forms: Forms, done = ""): Html {
  const message = messages[done];
  const { rename = { handle: person.handle, problems: noProblems } } = forms;
  const { store = { name: "", problems: noProblems } } = forms;
  const field: Field = {
    name: "handle",
    label: "Handle",
    hint: "The address of the profile changes with it. You can also change only the spelling.",
    value: rename.handle,
    maxLength: MAX_HANDLE,
    autocomplete: "off",
  };
  return html`${message === undefined ? "" : html`<p class="done" role="status">${message}</p>`}
    <h1>${person.handle}</h1>
    <p class="lead">
      ${person.email ?? "no email"} ·
      <a href="${profilePath(person.handle)}">Profile at /${person.handle}</a>
    </p>
    <section class="card" aria-labelledby="rename">
      <h2 id="rename">Rename</h2>
      ${problemSummary("Nothing was renamed", [field], rename.problems)}
      <form method="post" action="${base}/account/rename" novalidate>
        ${input(field, rename.problems)}
        <p class="actions"><button class="button">Rename</button></p>
      </form>
    </section>
    ${storeSection(base, person, store)}
    <section class="card" aria-labelledby="leave">
      <h2 id="leave">Leave</h2>
      <p>This deletes the account and frees its names. The other cell can take them immediately.</p>
      <div class="actions">
        <form method="post" action="${base}/sign-out"><button class="button quiet">Sign out</button></form>
        <form method="post" action="${base}/account/delete">
          <button class="button danger">Delete ${person.handle}</button>
        </form>
      </div>
    </section>`;
}
