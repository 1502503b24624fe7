import { html } from "hono/html";
import type { Timing } from "../launcher/timing.ts";
import { basePath, renderPage, type Html, type PageOwner } from "../web/layout.ts";

interface CellState {
  id: string;
  isUp: boolean;
}

export const landingPage = (
  owner: PageOwner,
  cells: readonly CellState[],
  coordinatorUrl: string,
  timing: Timing,
): Html =>
  renderPage({
    title: "Two cells, one set of names",
    owner,
    path: "/",
    main: html`<section class="hero">
        <h1>Two cells, <em>one set of names</em></h1>
        <p class="lead">
          Each cell is a complete copy of an application with its own database. The cells don't know each
          other. Leasehold makes sure that every name has at most one owner, even when processes crash.
        </p>
      </section>
      <section class="cells" aria-label="The cells">${cells.map(cellCard)}</section>
      <section aria-labelledby="try">
        <h2 id="try">Six things to try</h2>
        <ol class="tries">
          <li>
            <strong>Cause a conflict.</strong> Sign up as <em>ada</em> in Cell 1, then as <em>ADA</em> in Cell
            2. The form says which field is taken.
          </li>
          <li>
            <strong>Rename.</strong> One lease frees the old handle and claims the new one. This router caches
            the old one for up to ${timing.lookupCacheMs / 1_000} s.
          </li>
          <li>
            <strong>Open a store.</strong> The name of a store is unique, too, and has another rule than a
            handle.
          </li>
          <li>
            <strong>Crash a cell</strong> during a sign-up, before or after its COMMIT, and watch
            reconciliation recover the lease.
          </li>
          <li><strong>Free a name.</strong> Delete an account, and claim its name in the other cell.</li>
          <li><strong>Cause drift</strong> on a cell's operations page, and run a verification.</li>
        </ol>
      </section>
      <section aria-labelledby="how" class="how">
        <h2 id="how">How it works</h2>
        <ol class="flow">
          <li>
            <span class="node">Router</span
            ><span class="soft"
              >You are here. It asks the coordinator which cell has a name, and forwards the request.</span
            >
          </li>
          <li>
            <span class="node">Cells</span
            ><span class="soft">A cell begins a lease on a name, saves its rows, and commits the lease.</span>
          </li>
          <li>
            <span class="node">Coordinator</span
            ><span class="soft"
              >It stores the owner of every name. <a href="${coordinatorUrl}/docs">Its API</a> is at
              ${coordinatorUrl}.</span
            >
          </li>
        </ol>
      </section>
      <section class="card" aria-labelledby="find">
        <h2 id="find">Find a name</h2>
        <form method="get" action="/-/find" class="inline">
          <div class="field">
            <label for="address">Address, such as ada or stores/lamps</label>
            <input
              id="address"
              name="address"
              maxlength="200"
              autocomplete="off"
              autocapitalize="none"
              spellcheck="false"
              required
            />
          </div>
          <button class="button">Go there</button>
        </form>
      </section>`,
  });

const cellCard = ({ id, isUp }: CellState): Html =>
  html`<article class="cell" data-owner="${id}">
    <h2><span class="dot" aria-hidden="true"></span>Cell ${id}</h2>
    <p>${isUp ? "Running, with its application and database." : "Down. Its process starts again soon."}</p>
    <p><a class="button" href="${basePath(id)}">Open Cell ${id}</a></p>
  </article>`;
