import { html } from "hono/html";
import { MAX_EMAIL, MAX_HANDLE } from "../application/names.ts";
import { input, problemSummary, type Field, type Problems } from "../web/forms.ts";
import type { Html } from "../web/layout.ts";

export interface SignUp {
  handle: string;
  email: string;
  crash: string;
}

export const noSignUp: SignUp = { handle: "", email: "", crash: "" };

const fieldsOf = ({ handle, email }: SignUp): Field[] => [
  {
    name: "handle",
    label: "Handle",
    hint: "This is also the address of the profile. Case makes no difference: Ada and ada are the same name.",
    value: handle,
    maxLength: MAX_HANDLE,
    autocomplete: "off",
  },
  {
    name: "email",
    label: "Email",
    hint: "The example sends no emails.",
    value: email,
    maxLength: MAX_EMAIL,
    autocomplete: "off",
    type: "email",
  },
];

const endings = [
  { value: "", text: "No crash" },
  { value: "before_commit", text: "Crash after the begin, before the local COMMIT" },
  { value: "after_commit", text: "Crash after the local COMMIT, before the commit of the lease" },
];

export function signUpForm(base: string, cell: string, given: SignUp, problems: Problems): Html {
  const fields = fieldsOf(given);
  return html`<section class="card" aria-labelledby="sign-up">
    <h2 id="sign-up">Sign up in Cell ${cell}</h2>
    ${problemSummary("The sign-up failed", fields, problems)}
    <form method="post" action="${base}/sign-up" novalidate>
      ${fields.map((field) => input(field, problems))}
      <details ${given.crash === "" ? "" : "open"}>
        <summary>Crash this cell during the sign-up</summary>
        <fieldset>
          <legend>When should it crash?</legend>
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
          The process really kills itself. A few seconds later it starts again and recovers the lease.
        </p>
      </details>
      <p class="actions"><button class="button">Sign up</button></p>
    </form>
  </section>`;
}
