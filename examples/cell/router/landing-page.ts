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
          Each cell is a whole copy of an application with a database of its own. Neither knows the other.
          Leasehold sees to it that a name has one owner, whatever breaks.
        </p>
      </section>
      <section class="cells" aria-label="The cells">${cells.map(cellCard)}</section>
      <section aria-labelledby="try">
        <h2 id="try">Five things to try</h2>
        <ol class="tries">
          <li>
            <strong>Collide.</strong> Sign <em>ada</em> up in Cell 1, then <em>ADA</em> in Cell 2. The form
            says which field is taken.
          </li>
          <li>
            <strong>Rename.</strong> The route follows the username, in one lease. The old one ends here after
            ${timing.routeCacheMs / 1_000} s.
          </li>
          <li>
            <strong>Kill a cell</strong> in the middle of a sign-up, before or after its COMMIT, and watch
            reconciliation settle it.
          </li>
          <li><strong>Free a name.</strong> Delete an account, and take its name in the other cell.</li>
          <li><strong>Plant drift</strong> on a cell's operations page, and have it found.</li>
        </ol>
      </section>
      <section aria-labelledby="how" class="how">
        <h2 id="how">How it hangs together</h2>
        <ol class="flow">
          <li>
            <span class="node">Router</span
            ><span class="soft"
              >You are here. It asks the coordinator whose a route is, and passes the request on.</span
            >
          </li>
          <li>
            <span class="node">Cells</span
            ><span class="soft"
              >Before they save a name they take a lease on it; once it is saved, they commit the lease.</span
            >
          </li>
          <li>
            <span class="node">Coordinator</span
            ><span class="soft"
              >Keeps who owns what. <a href="${coordinatorUrl}/docs">Its API</a> is at
              ${coordinatorUrl}.</span
            >
          </li>
        </ol>
      </section>
      <section class="card" aria-labelledby="find">
        <h2 id="find">Where is it?</h2>
        <form method="get" action="/-/find" class="inline">
          <div class="field">
            <label for="route">Route</label>
            <input
              id="route"
              name="route"
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
    <p>
      ${isUp ? "Running: an application, a database, a loop that reconciles." : "Away: its process is about to start again."}
    </p>
    <p><a class="button" href="${basePath(id)}">Enter Cell ${id}</a></p>
  </article>`;
