import type { ConsoleSession } from "../auth/console-sessions.ts";
import type { AnswerOf, ConsoleApi, Problem, Answer } from "./console-api.ts";
import { problemNote, type Page } from "./layout.ts";
import { fieldValue, html, type Markup, type Part } from "./markup.ts";
import { durationText } from "../text/duration.ts";

/** What a page is made from. */
export interface View {
  api: ConsoleApi;
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

/** Reads all cells, as many as a deployment may have. */
export async function allCells(api: ConsoleApi): Promise<Answer<Cell[]>> {
  const cells: Cell[] = [];
  let token = "";
  do {
    const page = await api.call("listCells", { query: { page_size: "100", page_token: token } });
    if (!page.ok) return page;
    cells.push(...page.value.cells);
    token = page.value.next_page_token;
  } while (token !== "" && cells.length < MAX_CELLS);
  return { ok: true, value: cells };
}

const MAX_CELLS = 1_000;

interface Column<T> {
  title: string;
  value: (row: T) => Part;
  isNumber?: boolean;
}

/** The first column names the row. */
export function tableOf<T>(caption: string, rows: readonly T[], columns: readonly Column<T>[]): Markup {
  if (rows.length === 0) return html`<p class="panel soft">${caption}: none.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
    <table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(
            ({ title, isNumber }) =>
              html`<th scope="col" ${isNumber === true ? html`class="number"` : undefined}>${title}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${columns.map(({ value, isNumber }, index) =>
                index === 0
                  ? html`<th scope="row">${value(row)}</th>`
                  : html`<td ${isNumber === true ? html`class="number"` : undefined}>
                      ${value(row) ?? "-"}
                    </td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

export const factsOf = (facts: readonly (readonly [string, Part])[]): Markup =>
  html`<dl class="facts panel">
    ${facts.map(
      ([name, value]) =>
        html`<dt>${name}</dt>
          <dd>${value ?? "-"}</dd>`,
    )}
  </dl>`;

export function nextLink({ url }: View, token: string): Markup | undefined {
  if (token === "") return undefined;
  const next = new URL(url);
  next.searchParams.set("page_token", token);
  return html`<p><a class="button" href="${next.pathname + next.search}">Next page</a></p>`;
}

export const cellLink = (cell: string): Markup => html`<a href="/console/cells/${cell}">${cell}</a>`;

export const leaseLink = (cell: string, uuid: string): Markup =>
  html`<a class="id" href="/console/leases/${cell}/${uuid}">${uuid}</a>`;

export const agoOf = (time: string | null, nowMs: number): Part =>
  time === null ? null : html`<time datetime="${time}">${durationText(nowMs - Date.parse(time))} ago</time>`;

export const stateOf = (state: string | null): Markup =>
  state === "ACTIVE" || state === "COMMITTED"
    ? html`<span class="state good">${state}</span>`
    : html`<span class="state ${state === null ? "bad" : "warn"}">${state ?? "UNREACHABLE"}</span>`;

export const sizeOf = (bytes: number | null): Part =>
  bytes === null ? null : `${(bytes / 1_000_000).toFixed(1)} MB`;

/** A bar for each value, with the numbers in the table beside it. */
export function barsOf(label: string, values: readonly { name: string; value: number }[]): Markup {
  const most = Math.max(1, ...values.map(({ value }) => value));
  const height = 18 * values.length;
  return html`<figure class="panel">
    <figcaption class="soft">${label}</figcaption>
    <svg viewBox="0 0 600 ${height}" role="img" aria-label="${label}">
      ${values.map(
        ({ name, value }, index) =>
          html`<text x="0" y="${18 * index + 13}">${name}</text>
            <rect
              x="90"
              y="${18 * index + 3}"
              width="${Math.round((500 * value) / most)}"
              height="12"
              rx="2"
            />`,
      )}
    </svg>
  </figure>`;
}

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
