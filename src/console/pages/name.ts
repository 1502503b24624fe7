import { problemNote, type Page } from "../layout.ts";
import { fieldValue, html, type Markup } from "../markup.ts";
import { cellLink, factsOf, leaseLink, stateOf, whenOf, type View } from "../view.ts";

/** One name: its record, and what a router learns of it. */
export async function namePage({ api, input, nowMs }: View): Promise<Page> {
  const [type, value] = [input.get("type") ?? "", input.get("value") ?? ""];
  const params = { bucket_type: type, value };
  const declared = await api.call("getTypes");
  const types = declared.ok ? Object.keys(declared.value.types.bucket_types) : [];
  const lookUp = lookUpForm(types, type, value);
  if (value === "" || type === "") return { title: "Look up a name", main: lookUp };
  const [record, route] = await Promise.all([
    api.call("getRecord", { params }),
    api.call("getRoute", { params }),
  ]);
  const found = record.ok && "uuid" in record.value.record ? record.value.record : undefined;
  return {
    title: `Name ${value}`,
    status: record.ok ? 200 : record.problem.status,
    main: html`<p class="soft">Of the type ${type}.</p>
      <h2>Owner</h2>
      ${
        found === undefined
          ? record.ok
            ? undefined
            : problemNote(record.problem)
          : factsOf([
              ["Cell", cellLink(found.cell_id)],
              ["Status", stateOf(found.status)],
              ["Canonical form", found.bucket.value],
              ["Epoch", found.epoch],
              ["Subject", `${found.subject.type} ${found.subject.id}`],
              ["Source", `${found.source.type} ${found.source.id}`],
              [
                "Held by lease",
                found.lease_uuid === null ? "no lease" : leaseLink(found.cell_id, found.lease_uuid),
              ],
              ["Claimed", whenOf(found.created_at, nowMs)],
              ["Changed", whenOf(found.updated_at, nowMs)],
            ])
      }
      <h2>As a router sees it</h2>
      ${
        route.ok
          ? factsOf([
              ["Cell", cellLink(route.value.cell.id)],
              ["Address", route.value.cell.address],
              ["Epoch", route.value.epoch],
              ["Key", html`<code>${route.value.key}</code>`],
              ["Shard", route.value.shard],
              ["Position", route.value.position],
              ["May be kept", route.value.settled ? "yes" : "no: a lease holds it"],
            ])
          : problemNote(route.problem)
      }
      <h2>Another name</h2>
      ${lookUp}`,
  };
}

const lookUpForm = (types: readonly string[], type: string, value: string): Markup =>
  html`<form class="filters panel" action="/console/name">
    <label for="type"
      >Type
      <select id="type" name="type" required>
        ${[...new Set([...types, ...(type === "" ? [] : [type])])].map(
          (each) => html`<option ${each === type ? html`selected` : undefined}>${each}</option>`,
        )}
      </select></label
    >
    <label for="value"
      >Name<input id="value" name="value" required maxlength="1024" value="${fieldValue(value)}"
    /></label>
    <button>Look up</button>
  </form>`;
