import { html } from "hono/html";
import type { Html } from "./layout.ts";

export interface Field {
  name: string;
  label: string;
  hint: string;
  value: string;
  maxLength: number;
  /** The value of the `autocomplete` attribute. */
  autocomplete: string;
  type?: "text" | "email";
}

/** The problem of each invalid field, in words that follow its label. */
export type Problems = ReadonlyMap<string, string>;

export const noProblems: Problems = new Map();

/**
 * Renders an input with its label, its hint, and its problem. The first invalid field gets the focus, also
 * without JavaScript.
 */
export function input(field: Field, problems: Problems): Html {
  const { name, label, hint, value, maxLength, autocomplete, type = "text" } = field;
  const problem = problems.get(name);
  const [first] = problems.keys();
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <p class="hint" id="${name}-hint">${hint}</p>
    ${problem === undefined ? "" : html`<p class="problem" id="${name}-problem">${label} ${problem}.</p>`}
    <input
      id="${name}"
      name="${name}"
      type="${type}"
      value="${value}"
      maxlength="${maxLength}"
      autocomplete="${autocomplete}"
      autocapitalize="none"
      spellcheck="false"
      required
      aria-describedby="${problem === undefined ? "" : `${name}-problem `}${name}-hint"
      aria-invalid="${problem === undefined ? "false" : "true"}"
      ${first === name ? "autofocus" : ""}
    />
  </div>`;
}

/** Renders a list of all problems above the form, with a link to each field. */
export function problemSummary(title: string, fields: readonly Field[], problems: Problems): Html | "" {
  const wrong = fields.flatMap(({ name, label }) => {
    const problem = problems.get(name);
    return problem === undefined ? [] : [html`<li><a href="#${name}">${label} ${problem}</a></li>`];
  });
  if (wrong.length === 0) return "";
  return html`<div class="summary" role="alert">
    <h3>${title}</h3>
    <ul>
      ${wrong}
    </ul>
  </div>`;
}
