import { tableOf } from "../table.ts";
import { barsOf } from "../bars.ts";
import { problemNote, type Page } from "../layout.ts";
import { html, sizeText, countText, type Markup } from "../markup.ts";
import {
  allCells,
  findCell,
  NO_CELLS,
  cellLink,
  factsOf,
  failedPage,
  leaseLink,
  reasonField,
  sizeOf,
  stateOf,
  typedCellField,
  whenOf,
  type Cell,
  type Outcome,
  type View,
} from "../view.ts";
import { reportedOf } from "./verification.ts";
import { durationText } from "../../../common/text/duration.ts";

export async function cellsPage({ api }: View): Promise<Page> {
  const cells = await allCells(api);
  if (!cells.ok) return failedPage("Cells", cells.problem);
  const sizes = cells.value.map(({ cell_id: id, stored_bytes: bytes }) => ({
    name: `cell ${id}`,
    value: bytes ?? 0,
    text: sizeText(bytes ?? 0),
  }));
  return {
    title: "Cells",
    main: html`${tableOf(
      `Cells, ${cells.value.length}`,
      cells.value,
      [
        { title: "Cell", value: ({ cell_id: id }) => cellLink(id) },
        { title: "Name", value: ({ name }) => name },
        { title: "State", value: ({ state }) => stateOf(state) },
        { title: "Open leases", value: (cell) => cell.outstanding_leases, isNumber: true },
        { title: "Unapplied", value: (cell) => cell.unapplied_decisions, isNumber: true },
        { title: "Size", value: (cell) => sizeOf(cell.stored_bytes), isNumber: true },
        { title: "Address", value: ({ address }) => address },
      ],
      NO_CELLS,
    )}${sizes.length === 0 || sizes.length > 50 ? undefined : barsOf("Sizes of the ledgers", sizes)}`,
  };
}

export async function cellPage(view: View): Promise<Page> {
  const [id = ""] = view.rest;
  const found = await findCell(view.api, id);
  if (!found.ok) return failedPage("Cell", found.problem);
  const cell = found.value;
  if (cell === undefined)
    return {
      title: "No such cell",
      status: 404,
      main: html`<p class="panel">No cell with this id is registered.</p>`,
    };
  const leases = await view.api.call("listLeases", { params: { cell: id }, query: { page_size: "20" } });
  return {
    title: `Cell ${id}: ${cell.name}`,
    main: html`${factsOf([
        ["State", stateOf(cell.state)],
        ["Address", cell.address],
        ["Location", cell.location_hint],
        ["Open leases", cell.outstanding_leases],
        ["Unapplied decisions", cell.unapplied_decisions],
        ["Size of its ledger", sizeOf(cell.stored_bytes)],
        ["Removed", whenOf(cell.removed_at, view.nowMs)],
        ["Registered", whenOf(cell.created_at, view.nowMs)],
        ["Changed", whenOf(cell.updated_at, view.nowMs)],
      ])}
      <h2 id="reported">What the cell reported last</h2>
      ${reportedOf(cell.status)}
      <h2>Claims</h2>
      ${await claimsByType(view, cell)}
      <h2>Leases</h2>
      ${
        leases.ok
          ? tableOf(
              "Open leases, the first 20",
              leases.value.leases,
              [
                { title: "Lease", value: ({ uuid }) => leaseLink(id, uuid) },
                { title: "Age", value: ({ age_ms: ms }) => durationText(ms), isNumber: true },
              ],
              "No lease of this cell is open.",
            )
          : html`<p class="panel bad">${leases.problem.detail}</p>`
      }
      <p>
        <a href="/console/leases?cell=${id}">All open leases</a>,
        <a href="/console/audit?cell=${id}">what operators changed</a>
      </p>
      ${view.canChange ? stateForm(view, cell) : undefined}`,
  };
}

function stateForm({ formToken }: View, { cell_id: id, state }: Cell): Markup {
  if (state === "REMOVING" || state === "REMOVED")
    return html`<p class="panel empty">
      ${state === "REMOVED" ? "This cell is removed" : "This cell is being removed"}, so its state can't be
      changed. <code>leasehold cells remove --help</code>
    </p>`;
  return html`<h2>Change its state</h2>
    <form class="stack panel" method="post" action="/console/cells/${id}">
      <input type="hidden" name="token" value="${formToken}" />
      <label for="state"
        >Change
        <select id="state" name="change">
          ${Object.entries(changes)
            .filter(([, { from }]) => state === null || from.some((each) => each === state))
            .map(([name, { label }]) => html`<option value="${name}">${label}</option>`)}
        </select></label
      >
      ${typedCellField} ${reasonField()}
      <button class="danger">Change the state</button>
    </form>`;
}

const changes = {
  freeze: { label: "Freeze: refuse begins", route: "freezeCell", from: ["ACTIVE", "DRAINING"] },
  drain: { label: "Drain: only verification begins leases", route: "drainCell", from: ["ACTIVE", "FROZEN"] },
  unfreeze: { label: "Allow begins again", route: "unfreezeCell", from: ["FROZEN", "DRAINING"] },
} as const satisfies Record<string, { label: string; route: string; from: readonly string[] }>;

export async function changeCellState({ api, rest, input, canChange }: View): Promise<Outcome> {
  const [id = ""] = rest;
  const change = input.get("change") ?? "";
  const chosen = change === "freeze" || change === "drain" || change === "unfreeze" ? change : undefined;
  if (chosen === undefined || (canChange && input.get("typed_cell") !== id))
    return {
      title: "Nothing was done",
      status: 422,
      main: html`<p class="panel" role="alert">
        The id that you typed is not this cell's, or no change was chosen.
        <a href="/console/cells/${id}">Go back to cell ${id}</a>
      </p>`,
    };
  const done = await api.call(changes[chosen].route, {
    params: { cell: id },
    body: { reason: input.get("reason") ?? "" },
  });
  return done.ok ? { location: `/console/cells/${id}` } : failedPage("Nothing was done", done.problem);
}

/**
 * Counts the claims of a cell by the type of their names. The shards read claims for it, so it is done only
 * when somebody asks, or is about to remove the cell.
 */
async function claimsByType({ api, input }: View, { cell_id: cell, state }: Cell): Promise<Markup> {
  if (input.get("count") !== "1" && state !== "DRAINING" && state !== "REMOVING")
    return html`<form class="panel" action="/console/cells/${cell}">
      <input type="hidden" name="count" value="1" />
      <p class="soft">The shards read the claims to count them, so they are counted only on request.</p>
      <button>Count the claims</button>
    </form>`;
  const counted = await api.call("getRemoval", { params: { cell }, query: {} });
  if (!counted.ok) return problemNote(counted.problem);
  const { claims, claims_total: total, cursor, progress } = counted.value.removal;
  const counts = new Map<string, number>();
  for (const { bucket_type: type, count } of claims) counts.set(type, (counts.get(type) ?? 0) + count);
  const bars = [...counts].map(([name, value]) => ({ name, value }));
  return html`${
    bars.length === 0
      ? html`<p class="panel empty">The cell has no claims.</p>`
      : barsOf(`Claims by type, ${cursor === null ? "" : "at least "}${countText(total)} in all`, bars)
  }
  ${
    progress === null
      ? undefined
      : factsOf([
          ["Exported for the removal", progress.exported_claims],
          ["Released by it", progress.released_claims],
        ])
  }`;
}
