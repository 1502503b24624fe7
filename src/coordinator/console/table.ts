import { countText, html, type Markup, type Part } from "./markup.ts";

interface Column<T> {
  title: string;
  value: (row: T) => Part;
  isNumber?: boolean;
}

/**
 * The first column names the row. On a narrow page, the style sheet shows each row as a card, whose lines
 * begin with the titles of the columns. The roles stay the same there.
 *
 * @param none what to say if there are no rows
 */
export function tableOf<T>(
  caption: string,
  rows: readonly T[],
  columns: readonly Column<T>[],
  none: Part = html`${caption}: none.`,
): Markup {
  if (rows.length === 0) return html`<p class="panel empty">${none}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
    <table role="table">
      <caption>
        ${caption}
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map(
            ({ title, isNumber }) =>
              html`<th scope="col" role="columnheader" ${classOf(isNumber)}>${title}</th>`,
          )}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (row) =>
            html`<tr role="row">
              ${columns.map((column, at) => fieldOf(column, row, at))}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

const classOf = (isNumber = false): Markup | undefined => (isNumber ? html`class="number"` : undefined);

function fieldOf<T>({ title, value, isNumber }: Column<T>, row: T, at: number): Markup {
  const given = value(row);
  if (at === 0) return html`<th scope="row" role="rowheader" data-title="${title}">${given}</th>`;
  const shown = isNumber === true && typeof given === "number" ? countText(given) : given;
  if (shown === null || shown === undefined)
    return html`<td role="cell" data-title="${title}" class="${isNumber === true ? "none number" : "none"}">
      -
    </td>`;
  return html`<td role="cell" data-title="${title}" ${classOf(isNumber)}><span>${shown}</span></td>`;
}
