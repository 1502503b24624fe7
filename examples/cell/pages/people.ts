/** The start page of a cell: the list of its accounts, and the sign-up form. */
import type { Hono } from "hono";
import { setCookie } from "hono/cookie";
import { html } from "hono/html";
import type { Account } from "../application/accounts.ts";
import { emailProblem, handleProblem } from "../application/names.ts";
import { problemsOf } from "../application/problems.ts";
import type { CrashPoint } from "../protocol/action.ts";
import { noProblems, type Problems } from "../web/forms.ts";
import type { Html } from "../web/layout.ts";
import { readForm } from "../web/read-form.ts";
import { profilePath, storePath } from "./addresses.ts";
import type { CellPages } from "./app.ts";
import { noSignUp, signUpForm, type SignUp } from "./sign-up-form.ts";
import { personCookie } from "./person.ts";

const crashes: Readonly<Record<string, CrashPoint>> = {
  before_commit: "before_commit",
  after_commit: "after_commit",
};

/** Messages about the action that redirected to this page. */
const messages: Readonly<Record<string, string>> = {
  deleted: "The account is deleted, and its names are free in all cells.",
  "signed-out": "You are signed out.",
};

export function peoplePages(app: Hono, pages: CellPages): void {
  const { base, accounts, config } = pages;

  const page = async (given: SignUp, problems: Problems, done = ""): Promise<Html> => {
    const people = await accounts.list();
    const message = messages[done];
    return html`${message === undefined ? "" : html`<p class="done" role="status">${message}</p>`}
      <h1>People of Cell ${config.cell}</h1>
      <p class="lead">
        This cell has its own application and database. Handles, emails and the names of stores are unique
        across all cells.
      </p>
      ${signUpForm(base, config.cell, given, problems)} ${peopleList(base, people)}`;
  };

  app.get(base, async (context) =>
    pages.show(context, "People", await page(noSignUp, noProblems, context.req.query("done"))),
  );

  app.post(`${base}/sign-up`, async (context) => {
    const given = await readForm(context, ["handle", "email", "crash"]);
    const showProblems = async (problems: Problems): Promise<Response> =>
      pages.show(context, "The sign-up failed", await page(given, problems), 422);
    const malformed = malformedFields(given);
    if (malformed.size > 0) return showProblems(malformed);
    let id: number;
    try {
      id = await accounts.signUp(given, crashes[given.crash]);
    } catch (error) {
      return showProblems(problemsOf(error));
    }
    setCookie(context, personCookie(config.cell), String(id), {
      path: base,
      httpOnly: true,
      sameSite: "Strict",
    });
    return context.redirect(`${base}/account?done=signed-up`, 303);
  });
}

function malformedFields({ handle, email }: SignUp): Problems {
  const found = Object.entries({ handle: handleProblem(handle), email: emailProblem(email) });
  return new Map(
    found.flatMap(([name, problem]) => (problem === undefined ? [] : [[name, problem] as const])),
  );
}

function peopleList(base: string, people: readonly Account[]): Html {
  if (people.length === 0) return html`<p class="empty">There are no accounts yet.</p>`;
  return html`<section aria-labelledby="people">
    <h2 id="people">Accounts</h2>
    <p class="hint">This example has no passwords. You can sign in as anybody.</p>
    <ul class="people">
      ${people.map((person) => personItem(base, person))}
    </ul>
  </section>`;
}

const personItem = (base: string, { id, handle, email, store }: Account): Html =>
  html`<li>
    <div>
      <strong>${handle}</strong>
      <p class="soft">
        ${email ?? "no email"} · <a href="${profilePath(handle)}">/${handle}</a>
        ${store === null ? "" : html`· <a href="${storePath(store)}">/stores/${store}</a>`}
      </p>
    </div>
    <form method="post" action="${base}/sign-in">
      <input type="hidden" name="person" value="${id}" />
      <button class="button small quiet">Sign in<span class="hidden"> as ${handle}</span></button>
    </form>
  </li>`;
