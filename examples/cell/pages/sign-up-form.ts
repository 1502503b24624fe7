import { html } from "hono/html";
import { MAX_EMAIL, MAX_USERNAME } from "../application/names.ts";
import { input, problemSummary, type Field, type Problems } from "../web/forms.ts";
import type { Html } from "../web/layout.ts";

export interface SignUp {
  username: string;
  email: string;
  crash: string;
}

export const noSignUp: SignUp = { username: "", email: "", crash: "" };

const fieldsOf = ({ username, email }: SignUp): Field[] => [
  {
    name: "username",
    label: "Username",
    hint: "Also the address of the profile. Upper and lower case are one name.",
    value: username,
    maxLength: MAX_USERNAME,
    autocomplete: "off",
  },
  {
    name: "email",
    label: "Email",
    hint: "Nothing is sent.",
    value: email,
    maxLength: MAX_EMAIL,
    autocomplete: "off",
    type: "email",
  },
];

const endings = [
  { value: "", text: "Nothing: let it end well" },
  { value: "before_commit", text: "Crash after the begin, before the local COMMIT" },
  { value: "after_commit", text: "Crash after the local COMMIT, before the commit of the lease" },
];

export function signUpForm(base: string, cell: string, given: SignUp, problems: Problems): Html {
  const fields = fieldsOf(given);
  return html`<section class="card" aria-labelledby="sign-up">
    <h2 id="sign-up">Sign up in Cell ${cell}</h2>
    ${problemSummary("Nobody was signed up", fields, problems)}
    <form method="post" action="${base}/sign-up" novalidate>
      ${fields.map((field) => input(field, problems))}
      <details ${given.crash === "" ? "" : "open"}>
        <summary>Kill this cell in the middle of it</summary>
        <fieldset>
          <legend>What should happen on the way?</legend>
          ${endings.map(
            ({ value, text }) =>
              html`<label class="choice"
                ><input
                  type="radio"
                  name="crash"
                  value="${value}"
                  ${value === given.crash ? "checked" : ""}
                />${text}</label
              >`,
          )}
        </fieldset>
        <p class="hint">
          The process really kills itself. It starts again after a few seconds, and cleans up what it left.
        </p>
      </details>
      <p class="actions"><button class="button">Sign up</button></p>
    </form>
  </section>`;
}
