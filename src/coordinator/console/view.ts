import type { ConsoleSession } from "../auth/console-sessions.ts";
import type { AnswerOf, InternalApi, Problem, Answer } from "../api/internal-api.ts";
import { problemNote, type Page } from "./layout.ts";
import { fieldValue, html, type Markup, type Part, countText, sizeText } from "./markup.ts";
import { durationText } from "../../common/text/duration.ts";

/** What a page is made from. */
export interface View {
  api: InternalApi;
  session: ConsoleSession;
  /** The fields of the query, or of the form. */
  input: URLSearchParams;
  /** What the path has after the page's own part, decoded. */
  rest: readonly string[];
  /** The address of this page, with its query, for links to the next page. */
  url: URL;
  formToken: string;
  /** A viewer may not. Its pages have no forms, and the API refuses what it sends. */
  canChange: boolean;
  nowMs: number;
}

/** A page, or the address to show after a change. */
export type Outcome = Page | { location: string };

export type Cell = AnswerOf<"listCells">["cells"][number];

export const failedPage = (title: string, problem: Problem): Page => ({
  title,
  status: problem.status,
  main: problemNote(problem),
});

/** Reads all cells that are not removed, as many as a deployment may have. */
export const allCells = (api: InternalApi): Promise<Answer<Cell[]>> => readCells(api, {});

/** Finds a cell, also a removed one. Undefined: there is none. */
export async function findCell(api: InternalApi, id: string): Promise<Answer<Cell | undefined>> {
  const cells = await readCells(api, { include_removed: "true" });
  return cells.ok ? { ok: true, value: cells.value.find(({ cell_id: each }) => each === id) } : cells;
}

async function readCells(api: InternalApi, query: Record<string, string>): Promise<Answer<Cell[]>> {
  const cells: Cell[] = [];
  let token = "";
  do {
    const page = await api.call("listCells", { query: { ...query, page_size: "100", page_token: token } });
    if (!page.ok) return page;
    cells.push(...page.value.cells);
    token = page.value.next_page_token;
  } while (token !== "" && cells.length < MAX_CELLS);
  return { ok: true, value: cells };
}

const MAX_CELLS = 4_000;

/** Leaves out facts without a value. */
export const factsOf = (facts: readonly (readonly [string, Part])[]): Markup =>
  html`<dl class="facts panel">
    ${facts.map(([name, value]) =>
      value === null || value === undefined
        ? undefined
        : html`<div>
            <dt>${name}</dt>
            <dd>${typeof value === "number" ? countText(value) : value}</dd>
          </div>`,
    )}
  </dl>`;

export function nextLink({ url }: View, token: string): Markup | undefined {
  if (token === "") return undefined;
  const next = new URL(url);
  next.searchParams.set("page_token", token);
  return html`<p><a class="button" href="${next.pathname + next.search}">Next page</a></p>`;
}

/** What tables of cells say if there are none. */
export const NO_CELLS = html`No cell is registered yet. Register one with
  <code>leasehold cells add --help</code>`;

export const cellLink = (cell: string): Markup => html`<a href="/console/cells/${cell}">${cell}</a>`;

export const leaseLink = (cell: string, uuid: string): Markup =>
  html`<a class="id" href="/console/leases/${cell}/${uuid}">${uuid}</a>`;

export const transferLink = (id: string): Markup =>
  html`<a class="id" href="/console/transfers/${id}">${id}</a>`;

/** A subject or a source. */
export const entityOf = ({ type, id }: { type: string; id: string }): Markup =>
  html`<span class="short">${type}</span> ${id}`;

export const agoOf = (time: string | null, nowMs: number): Part =>
  time === null ? null : html`<time datetime="${time}">${durationText(nowMs - Date.parse(time))} ago</time>`;

export const stateOf = (state: string | null): Markup =>
  state === "ACTIVE" || state === "COMMITTED"
    ? html`<span class="state good">${state}</span>`
    : html`<span class="state ${state === null ? "bad" : "warn"}">${state ?? "UNREACHABLE"}</span>`;

/** A moment, and how long ago it was. */
export const whenOf = (time: string | null | undefined, nowMs: number): Part =>
  time === null || time === undefined
    ? null
    : html`${agoOf(time, nowMs)} <span class="soft">${time.slice(0, 19).replace("T", " ")} UTC</span>`;

/** The hour of a last use. */
export const hourOf = (time: string | undefined): Part =>
  time === undefined
    ? null
    : html`<time datetime="${time}">${time.slice(0, 16).replace("T", " ")} UTC</time>`;

export const sizeOf = (bytes: number | null): Part => (bytes === null ? null : sizeText(bytes));

/** To confirm a change of a cell, its id is typed. */
export const typedCellField = html`<label for="typed"
  >Type the id of the cell<input id="typed" name="typed_cell" required autocomplete="off" maxlength="19"
/></label>`;

/** @param value what was typed before, if the form comes again */
export const reasonField = (value = ""): Markup =>
  html`<label for="reason"
    >Reason <small>The audit keeps it.</small
    ><input id="reason" name="reason" required maxlength="500" value="${fieldValue(value)}"
  /></label>`;

/** The samples of the metrics, by name and labels as they are written. */
export type Samples = ReadonlyMap<string, number>;

/** Reads the samples of the metrics that the pages show: those with at most two labels. */
export function samplesIn(text: string): Samples {
  const lines = text.matchAll(
    /^([a-z_]+(?:\{[a-z]+="[\w .+-]*"(?:,[a-z]+="[\w .+-]*")?\})?) (-?[\d.e+-]+)$/gm,
  );
  return new Map([...lines].map(([, name = "", value]) => [name, Number(value)]));
}
