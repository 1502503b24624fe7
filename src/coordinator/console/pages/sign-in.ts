import { html } from "../markup.ts";
import type { Page } from "../layout.ts";

/** The form takes the key by POST, so it is in no address and in no history. */
export const signInPage = (why: string | undefined, status = 200): Page => ({
  title: "Sign in",
  status,
  main: html`<div class="narrow">
    ${why === undefined ? undefined : html`<p class="panel bad" role="alert">${why}</p>`}
    <form class="stack panel" method="post" action="/console/sign-in">
      <label for="key"
        >Key of an operator or a viewer
        <small>It is used once, to start a session of 30 minutes. The browser does not keep it.</small
        ><input
          id="key"
          name="key"
          type="password"
          autocomplete="off"
          spellcheck="false"
          required
          maxlength="1024"
      /></label>
      <button class="primary">Sign in</button>
    </form>
    <p class="soft">
      If you are signed in and came here from another site, <a href="/console">go on to the console</a>.
    </p>
  </div>`,
});
