import type { Page } from "../layout.ts";
import { html, type Markup } from "../markup.ts";
import { allCells, cellLink, leaseLink, type View } from "../view.ts";
import { nameLink } from "./leases.ts";

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The cells whose ledgers are asked for a lease. */
const MAX_ASKED = 100;

/** The keys that are searched, in pages of 100. */
const MAX_KEY_PAGES = 20;

/** Says what a text is: a name of some type, a lease, a cell or a key. */
export async function searchPage(view: View): Promise<Page> {
  const text = (view.input.get("q") ?? "").trim();
  if (text === "")
    return { title: "Search", main: html`<p class="panel">Give a name, a lease, a cell or a key.</p>` };
  const [names, leases, cell, key] = await Promise.all([
    namesOf(view, text),
    UUID.test(text) ? leasesOf(view, text) : [],
    /^[1-9]\d{0,18}$/.test(text) ? cellOf(view, text) : [],
    /^[\w-]{8,64}$/.test(text) ? keyOf(view, text) : [],
  ]);
  const found = [...cell, ...leases, ...key, ...names];
  return {
    title: `Found for this text: ${found.length}`,
    main: html`<p class="panel"><code>${text}</code></p>
      ${
        found.length === 0
          ? html`<p>It is no name, lease, cell or key that is known here.</p>`
          : html`<ul class="panel reasons">
              ${found.map((each) => html`<li>${each}</li>`)}
            </ul>`
      }
      <p class="soft">
        Subjects are not indexed: search for a name of the subject, or export the records of its cell.
      </p>`,
  };
}

/** Looks the text up as a name of every declared type. */
async function namesOf({ api }: View, text: string): Promise<Markup[]> {
  const declared = await api.call("getTypes");
  if (!declared.ok) return [html`Names can't be searched: ${declared.problem.detail}`];
  const types = Object.keys(declared.value.types.bucket_types);
  const answers = await Promise.all(
    types.map(async (type) => {
      const found = await api.call("getRecord", { params: { bucket_type: type, value: text } });
      return found.ok
        ? [
            html`Name ${nameLink({ type, value: text })} of the type ${type}, owned by cell
            ${cellLink(found.value.record.cell_id)}`,
          ]
        : [];
    }),
  );
  return answers.flat();
}

async function leasesOf({ api }: View, uuid: string): Promise<Markup[]> {
  const cells = await allCells(api);
  if (!cells.ok) return [html`Leases can't be searched: ${cells.problem.detail}`];
  const answers = await Promise.all(
    cells.value.slice(0, MAX_ASKED).map(async ({ cell_id: cell }) => {
      const found = await api.call("getLease", { params: { cell, uuid } });
      return found.ok
        ? [html`Lease ${leaseLink(cell, uuid)} of cell ${cellLink(cell)}: ${found.value.lease.state}`]
        : [];
    }),
  );
  return answers.flat();
}

async function cellOf({ api }: View, id: string): Promise<Markup[]> {
  const cells = await allCells(api);
  const cell = cells.ok ? cells.value.find(({ cell_id: each }) => each === id) : undefined;
  return cell === undefined ? [] : [html`Cell ${cellLink(id)}: ${cell.name}`];
}

async function keyOf({ api }: View, id: string): Promise<Markup[]> {
  let token = "";
  for (let page = 0; page < MAX_KEY_PAGES; page += 1) {
    const listed = await api.call("listKeys", { query: { page_size: "100", page_token: token } });
    if (!listed.ok) return [];
    const key = listed.value.keys.find((each) => each.id === id);
    if (key !== undefined)
      return [
        html`Key <a class="id" href="/console/keys/${id}">${id}</a> of the role ${key.role}
          ${key.note === null ? undefined : html`(${key.note})`}`,
      ];
    token = listed.value.next_page_token;
    if (token === "") return [];
  }
  return [];
}
